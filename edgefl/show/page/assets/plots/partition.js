/* How many training samples of which class each client has. */
(() => {
  const { series } = edgefl;
  // Names of classes that all fit below the map.
  const NAMED = 20;

  /* Runs that have the same data share a record. */
  const of = (page, choice) => page.partition[choice.data ?? 0];
  const namesOf = (page, one) => series.listed(one.runs.map((run) => series.runName(page, run)));
  const totalOf = (row) => row.reduce((sum, count) => sum + count, 0);

  function axes(one) {
    const shown = series.everyNth(one.clients.length, 40);
    const bare = { tickmode: "array", showgrid: false, zeroline: false };
    const some = series.everyNth(one.classes.length, edgefl.narrow() ? NAMED / 2 : NAMED);
    return {
      xaxis: {
        ...bare,
        title: "class",
        tickvals: some,
        ticktext: some.map((at) => edgefl.text(one.classes[at])),
      },
      yaxis: {
        ...bare,
        title: "client",
        autorange: "reversed",
        tickvals: shown,
        ticktext: shown.map((at) => String(one.clients[at])),
      },
    };
  }

  edgefl.plot({
    id: "partition",
    section: "partition",
    title: "Class distribution by client",
    groups: false,
    why: "Training samples by client and class. Runs that share their data share the map.",
    controls: (page) => [
      {
        name: "data",
        label: "Data of",
        kind: "select",
        options: page.partition.map((one, value) => ({ value, label: namesOf(page, one) })),
      },
      { name: "share", label: "As shares of the client", kind: "check" },
    ],
    height: (page, choice) => series.rowsHeight(of(page, choice).clients.length, 16),
    draw(page, choice) {
      const one = of(page, choice);
      if (!one) return { nothing: "Nothing to draw: no run says which classes its clients have." };
      if (!one.counts.length) return { nothing: `Nothing to draw: ${one.why}.`, chosen: true };
      const heat = series.heat({
        rows: one.clients.length,
        columns: one.classes.length,
        unit: choice.share ? "share" : "samples",
        value: (row, column) => one.counts[row][column] / (choice.share ? totalOf(one.counts[row]) || 1 : 1),
        words: (row, column) => [
          `client ${one.clients[row]}`,
          `class ${one.classes[column]}: ${edgefl.number(one.counts[row][column])} of` +
            ` ${edgefl.number(totalOf(one.counts[row]))} samples,` +
            ` ${edgefl.number(one.counts[row][column] / (totalOf(one.counts[row]) || 1), "share")}`,
        ],
      });
      const note = one.omitted ? `${edgefl.number(one.omitted)} more clients are not listed.` : "";
      return { data: [{ ...heat, zmin: 0 }], note, layout: axes(one) };
    },
    table(page, choice) {
      const one = of(page, choice);
      const classes = (one?.classes ?? []).map((name) => `class ${name} (samples)`);
      const rows = (one?.counts ?? []).map((counts, at) => [namesOf(page, one), one.clients[at], ...counts]);
      return { columns: ["runs", "client", ...classes], rows };
    },
  });
})();
