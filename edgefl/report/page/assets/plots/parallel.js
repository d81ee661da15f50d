/* Settings and figures of the runs as parallel axes, a line a run. */
(() => {
  const { series } = edgefl;
  const FIGURES = { accuracy: ["accuracy", "share"], time: ["virtual time", "s"], bytes: ["bytes", "B"], joules: ["energy", "J"] };
  // A setting whose values span more than this is drawn on a log axis.
  const LOG_SPAN = 50;
  const TICKS = 5;

  /* Where each of some categories is, from 0 to 1, and what stands there. */
  function categories(values) {
    const texts = values.map((value) => (value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value)));
    const all = series.distinct(texts).sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
    const place = (text) => (all.length > 1 ? all.indexOf(text) / (all.length - 1) : 0.5);
    const every = Math.ceil(all.length / 12);
    return { at: texts.map(place), texts, ticks: all.filter((_, at) => at % every === 0).map((text) => [place(text), text]) };
  }

  function numbers(values, unit) {
    const known = values.filter(edgefl.known);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const log = low > 0 && high / low > LOG_SPAN;
    const scale = log ? Math.log : (value) => value;
    const place = (value) => (high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0.5);
    const back = (share) => (log ? low * (high / low) ** share : low + (high - low) * share);
    const shares = high > low ? Array.from({ length: TICKS }, (_, tick) => tick / (TICKS - 1)) : [0.5];
    return {
      at: values.map((value) => (edgefl.known(value) ? place(value) : null)), log,
      texts: values.map((value) => edgefl.number(value, unit)), ticks: shares.map((share) => [share, edgefl.number(back(share), unit)]),
    };
  }

  /* The axes from left to right: the settings that differ, then the figures that are known. */
  function axes(page) {
    const { settings, figures } = page.sweep;
    const own = Object.entries(settings).map(([key, values]) => {
      const numeric = values.some(edgefl.known) && values.every((value) => value === null || edgefl.known(value));
      return { name: key, ...(numeric ? numbers(values, "") : categories(values)) };
    });
    const known = Object.keys(FIGURES).filter((key) => figures[key]?.some(edgefl.known));
    return [...own, ...known.map((key) => ({ name: FIGURES[key][0], ...numbers(figures[key], FIGURES[key][1]) }))];
  }

  /* The axes themselves, their ticks and names are drawn by hand: Plotly's own plot of this kind needs WebGL. */
  function frame(found) {
    const ink = edgefl.colour("--ink");
    const note = (x, y, text, more) => ({ x, y, text, showarrow: false, font: { size: 11 }, ...more });
    const shapes = found.map((_, at) => ({ type: "line", x0: at, x1: at, y0: 0, y1: 1, line: { width: 1, color: ink }, layer: "below" }));
    const annotations = found.flatMap((axis, at) => [
      note(at, 1.06, `<b>${edgefl.text(axis.name.split(".").at(-1))}</b>${axis.log ? "<br>(log)" : ""}`, { yanchor: "bottom", hovertext: edgefl.text(axis.name) }),
      ...axis.ticks.map(([y, text]) => note(at, y, edgefl.text(text), { xanchor: at === found.length - 1 ? "left" : "right", xshift: at === found.length - 1 ? 5 : -5,
        bgcolor: edgefl.colour("--paper"), borderpad: 1 })),
    ]);
    return { shapes, annotations };
  }

  edgefl.plot({
    id: "parallel", section: "sweep", title: "Settings and what became of them", height: 460,
    why: "A line is a run: its settings on the left, its figures on the right. Point at a line to see it alone.",
    draw(page) {
      if (!Object.keys(page.sweep.settings).length) return { nothing: "Nothing to draw: the runs do not differ in their settings." };
      const found = axes(page);
      const data = page.groups.map((_, group) => {
        const words = series.hover(series.groupName(page, group), ...found.map((axis) => `${edgefl.text(axis.name)}: ${edgefl.text(axis.texts[group])}`));
        return edgefl.line(page, group, { mode: "lines+markers", marker: { size: 6, symbol: series.look(group).symbol },
          x: found.map((_, at) => at), y: found.map((axis) => axis.at[group]), text: found.map(() => words), connectgaps: true,
          hovertemplate: "%{text}<extra></extra>", line: { width: page.groups.length > 20 ? 1.5 : 2.5 } });
      });
      const bare = { showgrid: false, zeroline: false, showticklabels: false, fixedrange: true };
      return { data, layout: { ...frame(found), margin: { l: 90, r: 80, t: 70, b: 20 }, xaxis: { ...bare, range: [-0.08, found.length - 0.92] },
                               yaxis: { ...bare, range: [-0.06, 1.06] } } };
    },
    /* The line under the pointer stays, all others are faint. */
    listen(canvas) {
      const shown = (at) => {
        const opacity = canvas.data.map((_, place) => (at === null || place === at ? 1 : 0.12));
        Plotly.restyle(canvas, { opacity });
      };
      canvas.on("plotly_hover", ({ points }) => shown(points[0].curveNumber));
      canvas.on("plotly_unhover", () => shown(null));
    },
    table(page) {
      const keys = Object.keys(page.sweep.settings);
      const figures = Object.keys(FIGURES).filter((key) => page.sweep.figures[key]);
      const rows = page.groups.map((_, group) => [series.groupName(page, group),
        ...keys.map((key) => { const value = page.sweep.settings[key][group]; return value !== null && typeof value === "object" ? JSON.stringify(value) : value; }),
        ...figures.map((key) => page.sweep.figures[key][group])]);
      return { columns: ["run", ...keys, ...figures.map((key) => `${FIGURES[key][0]} (${FIGURES[key][1]})`)], rows };
    },
  });
})();
