/* How many training samples of which class each client has. */
(() => {
  const { series } = edgefl;
  const known = (page) => page.partition.filter((one) => one.counts.length);
  const of = (page, choice) => known(page).find((one) => one.runs.includes(choice.run)) ?? known(page)[0];
  const byRun = (page) => known(page).flatMap((one) => one.runs.map((run) => ({ run })));

  edgefl.plot({
    id: "partition",
    section: "partition",
    title: "Classes of each client's data",
    groups: false,
    why: "Training samples by client and class.",
    controls: (page) => [
      series.runSwitch(page, byRun(page)),
      { name: "share", label: "As shares of the client", kind: "check" },
    ],
    height: (page, choice) =>
      known(page).length ? series.rowsHeight(of(page, choice).clients.length, 16) : 120,
    draw(page, choice) {
      if (!known(page).length) {
        const why = series.distinct(page.partition.map((one) => one.why)).join("; ");
        return { nothing: `Nothing to draw: ${why || "nothing is known of the runs' data"}.` };
      }
      const run = of(page, choice);
      const classes = run.classes.map((_, label) => label);
      const total = run.counts.map((row) => row.reduce((sum, count) => sum + count, 0));
      const z = choice.share
        ? run.counts.map((row, at) => row.map((count) => (100 * count) / (total[at] || 1)))
        : run.counts;
      const text = run.counts.map((row, at) =>
        row.map((count, label) =>
          series.hover(
            `client ${run.clients[at]}`,
            `class ${run.classes[label]}: ${edgefl.number(count)} of ${edgefl.number(total[at])} samples`,
          ),
        ),
      );
      const heat = {
        type: "heatmap",
        x: classes,
        y: run.clients.map((_, at) => at),
        z,
        text,
        hovertemplate: "%{text}<extra></extra>",
        colorscale: "Cividis",
        zmin: 0,
        xgap: 1,
        ygap: run.clients.length > 60 ? 0 : 1,
        colorbar: {
          title: { text: choice.share ? "share" : "samples" },
          ticksuffix: choice.share ? "%" : "",
          thickness: 14,
        },
      };
      const note = run.omitted ? `${edgefl.number(run.omitted)} more clients are not listed.` : "";
      const every = Math.ceil(run.clients.length / 40);
      const shown = run.clients.map((_, at) => at).filter((at) => at % every === 0);
      const yaxis = {
        title: "client",
        autorange: "reversed",
        tickmode: "array",
        showgrid: false,
        zeroline: false,
        tickvals: shown,
        ticktext: shown.map((at) => String(run.clients[at])),
      };
      const each = Math.ceil(classes.length / 20);
      const named = classes.filter((label) => label % each === 0);
      const xaxis = {
        title: "class",
        tickmode: "array",
        tickvals: named,
        ticktext: named.map((label) => edgefl.text(run.classes[label])),
        showgrid: false,
        zeroline: false,
      };
      return { data: [heat], note, layout: { xaxis, yaxis } };
    },
    table(page, choice) {
      if (!known(page).length) return { columns: ["run", "client"], rows: [] };
      const run = of(page, choice);
      const classes = run.classes.map((name) => `class ${name} (samples)`);
      const name = run.runs.map((place) => series.runName(page, place)).join("; ");
      return {
        columns: ["run", "client", ...classes],
        rows: run.clients.map((client, at) => [name, client, ...run.counts[at]]),
      };
    },
  });
})();
