/* How many clients took part, and how evenly, over rounds. */
(() => {
  const { series } = edgefl;
  const SHOWN = { fairness: "Jain's index", distinct: "clients that took part" };

  edgefl.plot({
    id: "participation", section: "participation", title: "Who took part",
    why: "Clients with a job merged so far, and Jain's index of how many each had merged: 1 if all had the same number,"
      + " 1/n if one of n clients had them all.",
    controls: [{ name: "what", label: "Show", kind: "radio", options: Object.keys(SHOWN).map((value) => ({ value, label: SHOWN[value] })) }],
    draw(page, choice) {
      const found = page.participation.filter((one) => one.round.length);
      if (!found.length) return { nothing: "Nothing to draw: no round has been merged yet." };
      const xs = edgefl.axis("round", "", []);
      const ys = edgefl.axis(SHOWN[choice.what], "", [], choice.what === "fairness" ? { range: [0, 1.03] } : { rangemode: "tozero" });
      const data = found.map((one) => {
        const { group, clients, refused } = page.runs[one.run];
        const words = (place) => series.hover(series.runName(page, one.run), `round ${one.round[place]}`,
          `Jain's index ${edgefl.number(one.fairness[place])}`, `${one.distinct[place]} of ${clients - refused} clients took part`);
        const of = { x: (place) => one.round[place], y: (place) => one[choice.what][place], text: words };
        const alone = one.round.length === 1;
        return edgefl.line(page, group, { ...series.points(one[choice.what], found.length, of),
          mode: alone ? "markers" : "lines", marker: { size: 9, symbol: series.look(group).symbol },
          showlegend: one.run === page.groups[group].runs[0] });
      });
      return { data, layout: { xaxis: xs.layout, yaxis: ys.layout } };
    },
    table(page) {
      const rows = page.participation.flatMap((one) => one.round.map((round, place) =>
        [series.runName(page, one.run), round, one.distinct[place], one.fairness[place]]));
      return { columns: ["run", "round", "distinct clients", "Jain's index"], rows };
    },
  });
})();
