/* Figures that papers claim, beside those of the runs. */
(() => {
  const { series } = edgefl;
  const PAIR = [["published", "#0072b2", "diamond-open"], ["ours", "#d55e00", "circle"]];

  edgefl.plot({
    id: "published", section: "published", title: "Published and ours", groups: false,
    why: "Figures that a scenario quotes of a paper, and what these runs come to.",
    height: (page) => series.rowsHeight(page.published.length, 44),
    controls: (page) => [{ name: "unit", label: "In", kind: "radio",
      options: series.distinct(page.published.map((one) => one.unit)).map((value) => ({ value, label: value || "numbers" })) }],
    draw(page, choice) {
      const found = page.published.filter((one) => one.unit === choice.unit);
      if (!found.length) return { nothing: "Nothing to draw: no scenario quotes published figures." };
      const xs = edgefl.axis("figure", choice.unit, found.flatMap((one) => [one.published, one.ours]));
      const words = (one) => series.hover(one.what, `published ${edgefl.number(one.published, one.unit)}`,
        edgefl.known(one.ours) ? `ours ${edgefl.number(one.ours, one.unit)}` : edgefl.text(one.why), edgefl.text(one.source));
      const rows = found.map((_, row) => row);
      const joined = { type: "scatter", mode: "lines", showlegend: false, hoverinfo: "skip", line: { color: edgefl.colour("--soft"), width: 1 },
                       x: found.flatMap((one) => [xs.of(one.published), xs.of(one.ours), null]), y: rows.flatMap((row) => [row, row, null]) };
      const data = PAIR.map(([key, color, symbol]) => ({
        type: "scatter", mode: "markers", name: key, x: found.map((one) => xs.of(one[key])), y: rows, text: found.map(words),
        hovertemplate: "%{text}<extra></extra>", marker: { color, symbol, size: 12, line: { width: 2 } },
      }));
      const missing = found.filter((one) => !edgefl.known(one.ours));
      const note = missing.map((one) => `${one.what}: ${one.why}.`).join(" ");
      return { data: [joined, ...data], note, layout: { ...series.legend, xaxis: xs.layout, yaxis: series.rows(found.map((one) => edgefl.text(one.what))) } };
    },
    table(page) {
      const rows = page.published.map((one) => [one.what, one.published, one.ours, one.unit, one.source, one.why]);
      return { columns: ["claim", "published", "ours", "unit", "source", "why there is none of ours"], rows };
    },
  });
})();
