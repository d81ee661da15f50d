/* How many clients took part, and how evenly, over rounds. */
(() => {
  const { series } = edgefl;
  const SHOWN = { fairness: "Jain's index", distinct: "participating clients" };

  const merged = (page) => page.participation.filter((one) => one.distinct.at(-1) > 0);

  /* Which runs' lines lie on one another. */
  function equal(page, found, what) {
    const same = Map.groupBy(found, (one) => JSON.stringify([one.round, one[what]]));
    const told = [...same.values()]
      .filter((runs) => runs.length > 1)
      .map((runs) => series.listed(runs.map((one) => series.runName(page, one.run))));
    return told.length ? `On the same line: ${told.join("; ")}.` : "";
  }

  edgefl.plot({
    id: "participation",
    section: "participation",
    title: "Participation and fairness",
    why:
      "Clients with at least one job merged so far, and Jain's fairness index of jobs merged per client: 1 if" +
      " all have the same number, 1/n if one of n clients has them all.",
    controls: (page) => [
      {
        name: "what",
        label: "Show",
        kind: "radio",
        options: Object.keys(SHOWN).map((value) => ({ value, label: SHOWN[value] })),
      },
      series.runsSwitch(page, merged(page)),
      series.logX(merged(page).map((one) => one.round.length)),
    ],
    draw(page, choice) {
      if (!merged(page).length) return { nothing: "Nothing to draw: nothing has been merged yet." };
      const found = series.chosenRuns(page, merged(page), choice.run);
      const without = series.without(page, merged(page));
      const rounds = found.flatMap((one) => one.round);
      const xs = edgefl.axis("round", "", rounds, { log: choice.log_x, ...(choice.log_x ? {} : edgefl.rounds(rounds)) });
      const ys = edgefl.axis(
        SHOWN[choice.what],
        "",
        [],
        choice.what === "fairness" ? { range: [0, 1.03] } : { rangemode: "tozero" },
      );
      const data = found.map((one) => {
        const { group, clients, refused } = page.runs[one.run];
        const words = (place) =>
          series.hover(
            series.runName(page, one.run),
            `round ${one.round[place]}`,
            `Jain's index ${edgefl.number(one.fairness[place])}`,
            `${one.distinct[place]} of ${clients - refused} clients took part`,
          );
        const of = { x: (place) => xs.of(one.round[place]), y: (place) => one[choice.what][place], text: words };
        return edgefl.line(page, group, {
          ...series.points(one[choice.what], found.length, of),
          marker: { size: 9, symbol: series.look(group).symbol },
          showlegend: one.run === page.groups[group].runs[0],
        });
      });
      const note = series.sentences(
        series.seedsNote(page, choice.run),
        equal(page, found, choice.what),
        without && `Not drawn, since nothing was merged: ${without}.`,
      );
      return { data, note, layout: { xaxis: xs.layout, yaxis: ys.layout } };
    },
    table(page) {
      const rows = page.participation.flatMap((one) =>
        one.round.map((round, place) => [
          series.runName(page, one.run),
          round,
          one.distinct[place],
          one.fairness[place],
        ]),
      );
      return { columns: ["run", "round", "distinct clients", "Jain's index"], rows };
    },
  });
})();
