/* How many training samples of which class each client has. */
(() => {
  const { series } = edgefl;
  const of = (page, choice) => page.partition.find((one) => one.run === choice.run) ?? page.partition[0];

  edgefl.plot({
    id: "partition", section: "partition", title: "Classes of each client's data", groups: false,
    why: "Training samples by client and class.",
    controls: (page) => [series.runSwitch(page, page.partition),
                         { name: "share", label: "As shares of the client", kind: "check" }],
    height: (page, choice) => (page.partition.length ? series.rowsHeight(of(page, choice).clients.length, 16) : 120),
    draw(page, choice) {
      if (!page.partition.length) {
        return { nothing: "Nothing to draw: the runs were saved without their clients' classes, or had no data." };
      }
      const run = of(page, choice);
      const classes = run.counts[0]?.map((_, label) => label) ?? [];
      const total = run.counts.map((row) => row.reduce((sum, count) => sum + count, 0));
      const z = choice.share ? run.counts.map((row, at) => row.map((count) => (100 * count) / (total[at] || 1))) : run.counts;
      const text = run.counts.map((row, at) => row.map((count, label) => series.hover(`client ${run.clients[at]}`,
        `class ${label}: ${edgefl.number(count)} of ${edgefl.number(total[at])} samples`)));
      const heat = {
        type: "heatmap", x: classes, y: run.clients.map((_, at) => at), z, text, hovertemplate: "%{text}<extra></extra>",
        colorscale: "Cividis", zmin: 0, xgap: 1, ygap: run.clients.length > 60 ? 0 : 1,
        colorbar: { title: { text: choice.share ? "share" : "samples" }, ticksuffix: choice.share ? "%" : "", thickness: 14 },
      };
      const note = run.omitted ? `${edgefl.number(run.omitted)} more clients are not listed.` : "";
      const every = Math.ceil(run.clients.length / 40);
      const shown = run.clients.map((_, at) => at).filter((at) => at % every === 0);
      const yaxis = { title: "client", autorange: "reversed", tickmode: "array", showgrid: false, zeroline: false, tickvals: shown,
                      ticktext: shown.map((at) => String(run.clients[at])) };
      const xaxis = { title: "class", tickmode: classes.length <= 20 ? "linear" : "auto", dtick: 1, showgrid: false, zeroline: false };
      return { data: [heat], note, layout: { xaxis, yaxis } };
    },
    table(page, choice) {
      if (!page.partition.length) return { columns: ["run", "client"], rows: [] };
      const run = of(page, choice);
      const classes = run.counts[0]?.map((_, label) => `class ${label} (samples)`) ?? [];
      const name = series.runName(page, run.run);
      return { columns: ["run", "client", ...classes], rows: run.clients.map((client, at) => [name, client, ...run.counts[at]]) };
    },
  });
})();
