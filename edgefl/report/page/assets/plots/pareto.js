/* Accuracy against what it cost, with the runs that no other beats in both. */
(() => {
  const { series } = edgefl;
  const COSTS = { time: ["virtual time", "s"], bytes: ["bytes of all clients", "B"], joules: ["energy of all clients", "J"] };
  // More names than these would cover each other.
  const NAMED = 8;

  const accuracies = (page) => page.sweep.figures.accuracy ?? [];
  const of = (page, cost) => accuracies(page).map((_, group) => group).filter((group) =>
    edgefl.known(accuracies(page)[group]) && edgefl.known(page.sweep.figures[cost]?.[group]));
  const frontOf = (page, cost) => [...(page.sweep.pareto[cost] ?? [])].sort((one, other) =>
    page.sweep.figures[cost][one] - page.sweep.figures[cost][other]);

  function point(page, group, { cost, xs, ys, front, named }) {
    const [title, unit] = COSTS[cost];
    const [accuracy, spent] = [accuracies(page)[group], page.sweep.figures[cost][group]];
    const words = series.hover(series.groupName(page, group), `accuracy ${edgefl.number(accuracy, "share")}`,
      `${title} ${edgefl.number(spent, unit)}`, front.includes(group) ? "on the front: no run beats it in both" : "");
    return edgefl.line(page, group, {
      mode: named ? "markers+text" : "markers", x: [xs.of(spent)], y: [ys.of(accuracy)], hovertext: [words],
      text: [edgefl.text(series.groupName(page, group))], textposition: "top center", cliponaxis: false,
      hovertemplate: "%{hovertext}<extra></extra>",
      marker: { color: page.groups[group].colour, symbol: series.look(group).symbol, size: front.includes(group) ? 14 : 9,
                line: { width: front.includes(group) ? 2 : 0, color: edgefl.colour("--ink") } },
    });
  }

  edgefl.plot({
    id: "pareto", section: "sweep", title: "Accuracy against its cost", height: 420,
    why: "Each run's last accuracy and what it spent in all. The line joins the runs that no other beats in both: the"
      + " Pareto front.",
    controls: (page) => [
      { name: "cost", label: "Against", kind: "radio", options: Object.keys(COSTS).filter((cost) => of(page, cost).length)
        .map((value) => ({ value, label: COSTS[value][0] })) },
      { name: "log_x", label: "Log x", kind: "check" },
    ],
    draw(page, choice) {
      const found = choice.cost ? of(page, choice.cost) : [];
      if (!found.length) return { nothing: "Nothing to draw: no run has both an accuracy and a known cost." };
      const [title, unit] = COSTS[choice.cost];
      const costs = page.sweep.figures[choice.cost];
      const xs = edgefl.axis(title, unit, found.map((group) => costs[group]), { log: choice.log_x });
      const ys = edgefl.axis("accuracy", "share", found.map((group) => accuracies(page)[group]));
      const front = frontOf(page, choice.cost);
      const line = {
        type: "scatter", mode: "lines", name: "Pareto front", hoverinfo: "skip", line: { shape: "hv", width: 1.5, dash: "dot", color: edgefl.colour("--soft") },
        x: front.map((group) => xs.of(costs[group])), y: front.map((group) => ys.of(accuracies(page)[group])),
      };
      const named = found.length <= NAMED;
      const points = found.map((group) => point(page, group, { cost: choice.cost, xs, ys, front, named }));
      const note = `On the front: ${series.listed(front.map((group) => series.groupName(page, group)))}.`;
      return { data: [line, ...points], note, layout: { xaxis: xs.layout, yaxis: ys.layout } };
    },
    table(page) {
      const rows = page.groups.map((_, group) => [series.groupName(page, group), accuracies(page)[group],
        ...Object.keys(COSTS).flatMap((cost) => [page.sweep.figures[cost]?.[group],
                                                 (page.sweep.pareto[cost] ?? []).includes(group) ? "yes" : "no"])]);
      const columns = Object.values(COSTS).flatMap(([title, unit]) => [`${title} (${unit})`, `on the front of ${title}`]);
      return { columns: ["run", "accuracy", ...columns], rows };
    },
  });
})();
