/* Accuracy against what it cost, with the runs that no other beats in both. */
(() => {
  const { series } = edgefl;
  // More names than these would cover each other.
  const NAMED = 8;

  const fronts = (page) => page.sweep.fronts;
  const figures = (page) => page.sweep.figures;
  const options = (page, key) =>
    series
      .distinct(fronts(page).map((one) => one[key]))
      .map((place) => ({ value: String(place), label: figures(page)[place].label }));
  const frontOf = (page, choice) =>
    fronts(page).find((one) => String(one.accuracy) === choice.accuracy && String(one.cost) === choice.cost);

  /* Names above and below in turn, towards the middle of the plot. */
  function sideOf(found, costs, group) {
    const sorted = [...found].sort((one, other) => costs[one] - costs[other]);
    const half = (costs[sorted[0]] + costs[sorted.at(-1)]) / 2;
    return `${sorted.indexOf(group) % 2 ? "bottom" : "top"} ${costs[group] > half ? "left" : "right"}`;
  }

  function point(page, group, { gain, cost, xs, ys, front, side }) {
    const [accuracy, spent] = [gain.values[group], cost.values[group]];
    const words = series.hover(
      series.groupName(page, group),
      `${gain.label} ${edgefl.number(accuracy, gain.unit)}`,
      `${cost.label} ${edgefl.number(spent, cost.unit)}`,
      front.includes(group) ? "on the front: no run beats it in both" : "",
    );
    return edgefl.line(page, group, {
      mode: side ? "markers+text" : "markers",
      x: [xs.of(spent)],
      y: [ys.of(accuracy)],
      hovertext: [words],
      text: [edgefl.text(series.groupName(page, group))],
      textposition: side || "top center",
      cliponaxis: false,
      hovertemplate: "%{hovertext}<extra></extra>",
      marker: {
        color: page.groups[group].colour,
        symbol: series.look(group).symbol,
        size: front.includes(group) ? 14 : 9,
        line: { width: front.includes(group) ? 2 : 0, color: edgefl.colour("--ink") },
      },
    });
  }

  edgefl.plot({
    id: "pareto",
    section: "sweep",
    title: "Accuracy against its cost",
    height: 420,
    why:
      "Each run's last accuracy and what it spent in all. The line joins the runs that no other beats in" +
      " both: the Pareto front.",
    controls: (page) => [
      { name: "accuracy", label: "Model", kind: "radio", options: options(page, "accuracy") },
      { name: "cost", label: "Against", kind: "radio", options: options(page, "cost") },
      { name: "log_x", label: "Log x", kind: "check" },
    ],
    draw(page, choice) {
      const one = frontOf(page, choice);
      if (!one)
        return {
          nothing: "Nothing to draw: no two finished runs have both an accuracy and a known cost.",
        };
      const [gain, cost] = [figures(page)[one.accuracy], figures(page)[one.cost]];
      const found = page.groups
        .map((_, group) => group)
        .filter((group) => edgefl.known(gain.values[group]) && edgefl.known(cost.values[group]));
      const of = (figure) => found.map((group) => figure.values[group]);
      const xs = edgefl.axis(cost.label, cost.unit, of(cost), { log: choice.log_x });
      const ys = edgefl.axis(gain.label, gain.unit, of(gain));
      const front = one.groups;
      const line = {
        type: "scatter",
        mode: "lines",
        name: "Pareto front",
        hoverinfo: "skip",
        line: { shape: "hv", width: 1.5, dash: "dot", color: edgefl.colour("--soft") },
        x: front.map((group) => xs.of(cost.values[group])),
        y: front.map((group) => ys.of(gain.values[group])),
      };
      const named = found.length <= NAMED;
      const points = found.map((group) =>
        point(page, group, {
          gain,
          cost,
          xs,
          ys,
          front,
          side: named && sideOf(found, cost.values, group),
        }),
      );
      const note = `On the front: ${series.listed(front.map((group) => series.groupName(page, group)))}.`;
      return { data: [line, ...points], note, layout: { xaxis: xs.layout, yaxis: ys.layout } };
    },
    table(page) {
      const used = series.distinct(fronts(page).flatMap((one) => [one.accuracy, one.cost]));
      const label = (place) => figures(page)[place].label;
      const rows = page.groups.map((_, group) => [
        series.groupName(page, group),
        ...used.map((place) => figures(page)[place].values[group]),
        ...fronts(page).map((one) => (one.groups.includes(group) ? "yes" : "no")),
      ]);
      const columns = [
        ...used.map((place) => `${label(place)} (${figures(page)[place].unit})`),
        ...fronts(page).map((one) => `on the front of ${label(one.accuracy)} against ${label(one.cost)}`),
      ];
      return { columns: ["run", ...columns], rows };
    },
  });
})();
