/* Accuracy against what it cost, with the runs that no other beats in both. */
(() => {
  const { series } = edgefl;
  // More names than these would cover each other.
  const NAMED = 8;

  const frontsOf = (page, accuracy) => page.sweep.fronts.filter((front) => front.accuracy === accuracy);
  const labelOf = (page, place) => page.sweep.figures[place].label;
  const options = (page, places) =>
    series.distinct(places).map((value) => ({ value, label: labelOf(page, value) }));

  /* Names above and below in turn, towards the middle of the plot. */
  function sideOf(found, costs, group) {
    const sorted = [...found].sort((one, other) => costs[one] - costs[other]);
    const half = (costs[sorted[0]] + costs[sorted.at(-1)]) / 2;
    return `${sorted.indexOf(group) % 2 ? "bottom" : "top"} ${costs[group] > half ? "left" : "right"}`;
  }

  // Names nearer to each other than these shares of the plot would overlap.
  const ABOVE = 0.12;
  const aside = () => (edgefl.narrow() ? 0.5 : 0.18);

  /* The groups that are named beside their points, those on the front first. */
  function namedOf(found, { accuracy, cost, xs, ys, front }) {
    const spread = (values) => Math.max(...values) - Math.min(...values) || 1;
    const at = (group) => [xs.of(cost.values[group]), ys.of(accuracy.values[group])];
    const [width, height] = [0, 1].map((axis) => spread(found.map((group) => at(group)[axis])));
    const near = (one, other) => {
      const [x, y] = [0, 1].map((axis) => Math.abs(at(one)[axis] - at(other)[axis]));
      return x < aside() * width && y < ABOVE * height;
    };
    const named = [];
    for (const group of series.distinct([...front.groups, ...found])) {
      if (!named.some((other) => near(group, other))) named.push(group);
    }
    return named;
  }

  function point(page, group, { accuracy, cost, xs, ys, front, side }) {
    const told = [accuracy, cost].map((one) => `${one.label} ${edgefl.number(one.values[group], one.unit)}`);
    const best = front.groups.includes(group);
    const words = series.hover(
      series.groupName(page, group),
      ...told,
      best ? "on the front: no run beats it" : "",
    );
    return edgefl.line(page, group, {
      mode: side ? "markers+text" : "markers",
      x: [xs.of(cost.values[group])],
      y: [ys.of(accuracy.values[group])],
      hovertext: [words],
      text: [edgefl.text(series.groupName(page, group))],
      textposition: side || "top center",
      cliponaxis: false,
      hovertemplate: "%{hovertext}<extra></extra>",
      marker: {
        color: page.groups[group].colour,
        symbol: series.look(group).symbol,
        size: best ? 14 : 9,
        line: { width: best ? 2 : 0, color: edgefl.colour("--ink") },
      },
    });
  }

  function line(front, { accuracy, cost, xs, ys }) {
    return {
      type: "scatter",
      mode: "lines",
      name: "Pareto front",
      hoverinfo: "skip",
      line: { shape: "hv", width: 1.5, dash: "dot", color: edgefl.colour("--soft") },
      x: front.groups.map((group) => xs.of(cost.values[group])),
      y: front.groups.map((group) => ys.of(accuracy.values[group])),
    };
  }

  edgefl.plot({
    id: "pareto",
    section: "curves",
    title: "Accuracy against cost (Pareto front)",
    height: 420,
    why:
      "Each run's last accuracy and its total cost. The line joins the Pareto front: the runs that no other" +
      " run beats in both.",
    controls(page, choice) {
      const accuracies = options(
        page,
        page.sweep.fronts.map((front) => front.accuracy),
      );
      const accuracy = choice.accuracy ?? accuracies[0]?.value;
      return [
        { name: "accuracy", label: "Show", kind: "radio", options: accuracies },
        {
          name: "cost",
          label: "Against",
          kind: "radio",
          options: options(
            page,
            frontsOf(page, accuracy).map((front) => front.cost),
          ),
        },
        ...(accuracies.length ? [{ name: "log_x", label: "Log x", kind: "check" }] : []),
      ];
    },
    draw(page, choice) {
      const front = frontsOf(page, choice.accuracy).find((one) => one.cost === choice.cost);
      if (!front)
        return { nothing: "Nothing to draw: it takes two runs that have both an accuracy and a known cost." };
      const [accuracy, cost] = [front.accuracy, front.cost].map((place) => page.sweep.figures[place]);
      const found = page.groups
        .map((_, group) => group)
        .filter((group) => edgefl.known(accuracy.values[group]) && edgefl.known(cost.values[group]));
      const xs = edgefl.axis(
        cost.label,
        cost.unit,
        found.map((group) => cost.values[group]),
        { log: choice.log_x },
      );
      const ys = edgefl.axis(
        accuracy.label,
        accuracy.unit,
        found.map((group) => accuracy.values[group]),
      );
      const drawn = { accuracy, cost, xs, ys, front };
      const named = found.length <= NAMED ? namedOf(found, drawn) : [];
      const points = found.map((group) =>
        point(page, group, {
          ...drawn,
          side: named.includes(group) && sideOf(found, cost.values, group),
        }),
      );
      const names = series.listed(front.groups.map((group) => series.groupName(page, group)));
      const note = names ? `On the front: ${names}.` : "No run is done yet, so there is no front.";
      return { data: [line(front, drawn), ...points], note, layout: { xaxis: xs.layout, yaxis: ys.layout } };
    },
    table(page) {
      const { figures, fronts } = page.sweep;
      const rows = fronts.flatMap((front) =>
        page.groups.map((_, group) => [
          series.groupName(page, group),
          labelOf(page, front.accuracy),
          figures[front.accuracy].values[group],
          `${labelOf(page, front.cost)} (${figures[front.cost].unit})`,
          figures[front.cost].values[group],
          front.groups.includes(group) ? "yes" : "no",
        ]),
      );
      return { columns: ["run", "accuracy of", "accuracy", "cost", "spent", "on the front"], rows };
    },
  });
})();
