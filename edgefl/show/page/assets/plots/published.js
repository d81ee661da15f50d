/* Figures that papers report, beside those of the runs. */
(() => {
  const { series } = edgefl;
  const all = (page) => page.published.flatMap((one) => one.figures.map((each) => ({ ...each, paper: one.paper })));
  const kind = (one) => (one.unit === "x" ? `${one.figure}, as a share` : one.figure);
  const unit = (one) => (one.unit === "x" ? "" : one.unit);
  const nameOf = (one) => (one.group === null || one.name === one.run ? one.run : `${one.run}: ${one.name}`);

  function marks(name, { color, symbol }, points) {
    return {
      type: "scatter",
      mode: "markers",
      name,
      hovertemplate: "%{text}<extra></extra>",
      marker: { color, symbol, size: 12, line: { width: 2 } },
      x: points.map(([x]) => x),
      y: points.map(([, y]) => y),
      text: points.map(([, , text]) => text),
    };
  }

  edgefl.plot({
    id: "published",
    section: "published",
    title: "Published and reproduced",
    groups: false,
    why: "What a paper reports of a run, and what the run with these settings has here.",
    controls: (page) => [
      {
        name: "figure",
        label: "Figure",
        kind: "select",
        options: series.distinct(all(page).map(kind)).map((value) => ({ value, label: value })),
      },
    ],
    height: (page, choice) =>
      series.rowsHeight(all(page).filter((one) => kind(one) === choice?.figure).length, 40),
    draw(page, choice) {
      const found = all(page).filter((one) => kind(one) === choice.figure);
      if (!found.length) return { nothing: "Nothing to draw: no scenario quotes published figures." };
      const values = found.flatMap((one) => [one.published, one.here]).filter(edgefl.known);
      const xs = edgefl.axis(choice.figure, unit(found[0]), values);
      const words = (one, whose, value) =>
        series.hover(nameOf(one), `${whose}: ${edgefl.number(value, unit(one))}`, one.paper);
      const published = found.map((one, row) => [
        xs.of(one.published),
        row,
        words(one, "published", one.published),
      ]);
      const known = found.map((one, row) => [one, row]).filter(([one]) => edgefl.known(one.here));
      const ours = known.map(([one, row]) => [xs.of(one.here), row + 0.18, words(one, "here", one.here)]);
      const half = ([one]) => (one.interval_95 ? xs.of(one.interval_95.high) - xs.of(one.here) : 0);
      const bars = { error_x: { type: "data", array: known.map(half), thickness: 1.5 } };
      const missing = found.filter((one) => !edgefl.known(one.here)).map((one) => one.run);
      return {
        data: [
          marks("published", { color: "#0072b2", symbol: "diamond-open" }, published),
          { ...marks("here", { color: "#d55e00", symbol: "circle" }, ours), ...bars },
        ],
        note: missing.length ? `Not here: ${series.listed(missing)}.` : "",
        layout: {
          ...series.legend,
          xaxis: xs.layout,
          yaxis: series.rows(found.map((one) => edgefl.text(nameOf(one)))),
        },
      };
    },
    table(page) {
      const columns = ["paper", "run", "figure", "unit", "published", "name", "here", "deviation"];
      const rows = all(page).map((one) => columns.map((key) => one[key]));
      return { columns, rows };
    },
  });
})();
