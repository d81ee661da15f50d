/* Settings and figures of the runs as parallel axes, a line a run. */
(() => {
  const { series } = edgefl;
  // Of the figures of a comparison, those that are drawn.
  const FIGURES = /^accuracy\.|^virtual_s$|^down_bytes \+ up_bytes$|^joules$/;
  // A setting whose values span more than this is drawn on a log axis.
  const LOG_SPAN = 50;
  const TICKS = 5;

  const LONGEST = 18;
  const HEADING = 16;
  const cut = (text) => edgefl.text(text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

  /* A setting's value in a line: "dirichlet, alpha 0.1". */
  function words(value) {
    if (value === null) return "none";
    if (typeof value !== "object") return edgefl.known(value) ? edgefl.number(value) : String(value);
    const parts = Object.entries(value).map(([key, own]) =>
      key === "name" ? words(own) : `${key} ${words(own)}`,
    );
    return Array.isArray(value) ? value.map(words).join(", ") : parts.join(", ");
  }

  const written = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : value);

  /* Where each of some categories is, from 0 to 1, and what stands there. */
  function categories(values) {
    const texts = values.map(words);
    const all = series
      .distinct(texts)
      .sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
    const place = (text) => (all.length > 1 ? all.indexOf(text) / (all.length - 1) : 0.5);
    const every = Math.ceil(all.length / 12);
    return {
      at: texts.map(place),
      texts,
      ticks: all.filter((_, at) => at % every === 0).map((text) => [place(text), cut(text)]),
    };
  }

  // What a character takes of an axis that lies; the ends of an axis have their ticks before those between.
  const CHARACTER = 0.02;
  const lying = (ticks) =>
    [ticks[0], ticks.at(-1), ...ticks.slice(1, -1)].reduce((kept, [share, text]) => {
      const near = ([other, words]) => Math.abs(share - other) < CHARACTER * (text.length + words.length);
      return kept.some(near) ? kept : [...kept, [share, text]];
    }, []);

  // Ticks nearer to each other than this share of the axis would overlap.
  const NEAR = 0.06;
  const apart = (shares) =>
    shares
      .sort((one, other) => one - other)
      .reduce((kept, share) => (share - (kept.at(-1) ?? -1) < NEAR ? kept : [...kept, share]), []);

  function numbers(values, unit) {
    const known = values.filter(edgefl.known);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const log = low > 0 && high / low > LOG_SPAN;
    const scale = log ? Math.log : (value) => value;
    const place = (value) => (high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0.5);
    const back = (share) => (log ? low * (high / low) ** share : low + (high - low) * share);
    const own = series.distinct(known);
    const even = Array.from({ length: TICKS }, (_, tick) => tick / (TICKS - 1));
    const shares = own.length <= TICKS ? apart(own.map(place)) : even;
    return {
      at: values.map((value) => (edgefl.known(value) ? place(value) : null)),
      log,
      texts: values.map((value) => edgefl.number(value, unit)),
      ticks: shares.map((share) => [share, edgefl.number(Number(back(share).toPrecision(3)), unit)]),
    };
  }

  // Of more settings than these, those are left out that say nothing about all runs' training.
  const MOST = 8;
  const isShared = ([key, values]) => !key.startsWith("evaluate.") && values.every((value) => value !== null);

  function settingsOf(page) {
    const all = Object.entries(page.sweep.settings);
    const shared = all.filter(isShared);
    return all.length > MOST && shared.length ? shared : all;
  }

  function without(page) {
    const shown = settingsOf(page).map(([key]) => key);
    const left = Object.keys(page.sweep.settings).filter((key) => !shown.includes(key));
    return left.length
      ? `Not drawn, since some runs lack them or they are about evaluation: ${left.join(", ")}.`
      : "";
  }

  /* The axes from left to right: the settings that differ, then the figures that are known. */
  function axes(page) {
    const { figures } = page.sweep;
    const own = settingsOf(page).map(([key, values]) => {
      const numeric =
        values.some(edgefl.known) && values.every((value) => value === null || edgefl.known(value));
      return { name: key, ...(numeric ? numbers(values, "") : categories(values)) };
    });
    const shown = figures.filter((one) => FIGURES.test(one.key) && one.values.some(edgefl.known));
    return [...own, ...shown.map((one) => ({ name: one.label, ...numbers(one.values, one.unit) }))];
  }

  /* Axes, ticks and names drawn by hand, since Plotly's own plot of this kind needs WebGL. Where there
     is no room for them side by side, the axes lie one below the other. */
  function frame(found, upright) {
    const ink = edgefl.colour("--ink");
    const note = (along, across, text, more) => ({
      x: upright ? along : across,
      y: upright ? across : along,
      text,
      showarrow: false,
      font: { size: 11 },
      ...more,
    });
    const line = (at) => ({
      type: "line",
      layer: "below",
      line: { width: 1, color: ink },
      x0: upright ? at : 0,
      x1: upright ? at : 1,
      y0: upright ? 0 : at,
      y1: upright ? 1 : at,
    });
    const tick = (at) =>
      upright
        ? { xanchor: at === found.length - 1 ? "left" : "right", xshift: at === found.length - 1 ? 5 : -5 }
        : { yanchor: "top", yshift: -4 };
    const side = (share) =>
      upright ? {} : { xanchor: share < 0.2 ? "left" : share > 0.8 ? "right" : "center" };
    const name = ({ name: full, log }) => {
      const parts = full.split(".").slice(-2).map((part) => series.folded(edgefl.text(part), HEADING));
      const words = upright ? parts.join("<br>") : edgefl.text(full);
      return `<b>${words}</b>${log ? " (log)" : ""}`;
    };
    const heading = upright ? { yanchor: "bottom" } : { xanchor: "left", yanchor: "bottom", yshift: 5 };
    return {
      shapes: found.map((_, at) => line(at)),
      annotations: found.flatMap((axis, at) => [
        note(at, upright ? 1.05 : 0, name(axis), {
          ...heading,
          bgcolor: edgefl.colour("--paper"),
          hovertext: edgefl.escaped(axis.name),
        }),
        ...(upright ? axis.ticks : lying(axis.ticks)).map(([share, text]) =>
          note(at, share, text, {
            ...tick(at),
            ...side(share),
            bgcolor: edgefl.colour("--paper"),
            borderpad: 1,
          }),
        ),
      ]),
    };
  }

  function layout(found, upright) {
    const bare = { showgrid: false, zeroline: false, showline: false, showticklabels: false, fixedrange: true };
    const along = { ...bare, range: upright ? [-0.08, found.length - 0.92] : [found.length - 0.7, -0.5] };
    const across = { ...bare, range: upright ? [-0.06, 1.06] : [-0.04, 1.04] };
    return {
      ...frame(found, upright),
      margin: upright ? { l: 120, r: 80, t: 60, b: 20 } : { l: 24, r: 24, t: 10, b: 10 },
      xaxis: upright ? along : across,
      yaxis: upright ? across : along,
      legend: { orientation: "h", x: 0, y: -0.03, yanchor: "top" },
    };
  }

  const EACH = 115;
  const isUpright = (found) => Math.min(document.documentElement.clientWidth, 1120) >= EACH * found.length;

  edgefl.plot({
    id: "parallel",
    section: "sweep",
    title: "Settings and results",
    why: "Each line is a run: first its settings, then its results. Point at a line to see it alone.",
    height(page) {
      const found = axes(page);
      return isUpright(found) ? 460 : 70 * found.length + 60;
    },
    draw(page) {
      if (!Object.keys(page.sweep.settings).length)
        return { nothing: "Nothing to draw: the runs do not differ in their settings." };
      const found = axes(page);
      const upright = isUpright(found);
      const data = page.groups.map((_, group) => {
        const told = series.hover(
          series.groupName(page, group),
          ...found.map((axis) => `${axis.name}: ${axis.texts[group]}`),
        );
        const [along, across] = [found.map((_, at) => at), found.map((axis) => axis.at[group])];
        return edgefl.line(page, group, {
          mode: "lines+markers",
          marker: { size: 6, symbol: series.look(group).symbol },
          connectgaps: true,
          x: upright ? along : across,
          y: upright ? across : along,
          text: found.map(() => told),
          hovertemplate: "%{text}<extra></extra>",
          line: { width: page.groups.length > 20 ? 1.5 : 2.5 },
        });
      });
      return { data, note: without(page), layout: layout(found, upright) };
    },
    /* The line under the pointer stays, all others are faint. */
    listen(canvas) {
      const shown = (uid) => {
        for (const line of canvas.querySelectorAll(".scatterlayer .trace")) {
          line.style.opacity = !uid || line.classList.contains(`trace${uid}`) ? 1 : 0.12;
        }
      };
      canvas.on("plotly_hover", ({ points }) => shown(points[0].fullData.uid));
      canvas.on("plotly_unhover", () => shown(""));
    },
    table(page) {
      const keys = Object.keys(page.sweep.settings);
      const { figures } = page.sweep;
      const rows = page.groups.map((_, group) => [
        series.groupName(page, group),
        ...keys.map((key) => written(page.sweep.settings[key][group])),
        ...figures.map((one) => one.values[group]),
      ]);
      const titles = figures.map(({ label, unit }) => (unit ? `${label} (${unit})` : label));
      return { columns: ["run", ...keys, ...titles], rows };
    },
  });
})();
