/* Figures that papers claim, beside those of the runs. */
(() => {
  const { series } = edgefl;
  const PAIR = [
    ["published", "#0072b2", "diamond-open"],
    ["ours", "#d55e00", "circle"],
  ];

  /* A row for each pair of groups, model and device of each claim, or one that says why there is none. */
  const rowsOf = (page) =>
    page.published.flatMap((one) => {
      const what = `${one.method}, ${one.figure}`;
      if (!one.ours.length) return [{ ...one, what, ours: null, of: null }];
      return one.ours.map((saving) => ({
        ...one,
        what: `${what}: ${saving.model} on ${saving.device}`,
        ours: saving.saved,
        of: saving.against,
        why: edgefl.known(saving.saved) ? "" : "not known of the same clients in both",
      }));
    });

  edgefl.plot({
    id: "published",
    section: "published",
    title: "Published and ours",
    groups: false,
    why: "The most time and memory that a paper says a method saves, and what these runs' plans say.",
    height: (page) => series.rowsHeight(rowsOf(page).length, 44),
    draw(page) {
      const found = rowsOf(page);
      if (!found.length) return { nothing: "Nothing to draw: no scenario quotes published figures." };
      const xs = edgefl.axis(
        "share saved",
        "share",
        found.flatMap((one) => [one.published, one.ours]),
      );
      const words = (one) =>
        series.hover(
          one.what,
          `published: up to ${edgefl.number(one.published, "share")}`,
          edgefl.known(one.ours) ? `ours: ${edgefl.number(one.ours, "share")}` : one.why,
          edgefl.known(one.of) ? `of ${edgefl.number(one.of, one.unit)}` : "",
          one.source,
        );
      const rows = found.map((_, row) => row);
      const joined = {
        type: "scatter",
        mode: "lines",
        showlegend: false,
        hoverinfo: "skip",
        line: { color: edgefl.colour("--soft"), width: 1 },
        x: found.flatMap((one) => [xs.of(one.published), xs.of(one.ours), null]),
        y: rows.flatMap((row) => [row, row, null]),
      };
      const data = PAIR.map(([key, color, symbol]) => ({
        type: "scatter",
        mode: "markers",
        name: key,
        x: found.map((one) => xs.of(one[key])),
        y: rows,
        text: found.map(words),
        hovertemplate: "%{text}<extra></extra>",
        marker: { color, symbol, size: 12, line: { width: 2 } },
      }));
      const missing = found.filter((one) => !edgefl.known(one.ours));
      const note = missing.map((one) => `${one.what}: ${one.why}.`).join(" ");
      return {
        data: [joined, ...data],
        note,
        layout: {
          ...series.legend,
          xaxis: xs.layout,
          yaxis: series.rows(found.map((one) => edgefl.text(one.what))),
        },
      };
    },
    table(page) {
      const rows = rowsOf(page).map((one) => [
        one.what,
        one.published,
        one.ours,
        one.of,
        one.unit,
        one.source,
        one.why,
      ]);
      const columns = ["claim", "published (share saved)", "ours (share saved)", "of", "unit", "source"];
      return { columns: [...columns, "why there is none of ours"], rows };
    },
  });
})();
