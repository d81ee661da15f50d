/* Accuracy or loss over time, rounds, bytes, energy or client-seconds, with a band over seeds. */
(() => {
  const AXES = { time: ["virtual time", "s"], round: ["round", ""], bytes: ["bytes", "B"], joules: ["energy", "J"],
                 client_seconds: ["client-seconds", "s"] };
  const titled = ([name, unit]) => (unit ? `${name} (${unit})` : name);
  const of = (page, choice) => page.curves.filter((curve) => curve.model === choice.model && curve.x[choice.x]);

  function controls(page) {
    const models = [...new Set(page.curves.map((curve) => curve.model))];
    const axes = Object.keys(AXES).filter((axis) => page.curves.some((curve) => curve.x[axis]));
    return [
      { name: "y", label: "Show", kind: "radio",
        options: [{ value: "accuracy", label: "accuracy" }, { value: "loss", label: "loss" }] },
      { name: "x", label: "Against", kind: "radio", options: axes.map((value) => ({ value, label: AXES[value][0] })) },
      { name: "model", label: "Model", kind: "radio", options: models.map((value) => ({ value, label: value })) },
    ];
  }

  function band(page, curve, { x, y }) {
    const [low, high] = [curve[`${y}_low`], curve[`${y}_high`]];
    if (!low) return [];
    const along = curve.x[x];
    return [{ type: "scatter", mode: "lines", group: curve.group, x: [...along, ...[...along].reverse()],
              y: [...high, ...[...low].reverse()], fill: "toself", line: { width: 0 }, hoverinfo: "skip",
              fillcolor: edgefl.faint(page.groups[curve.group].colour), showlegend: false }];
  }

  edgefl.plot({
    id: "accuracy", section: "curves", title: "Accuracy against cost",
    why: "Evaluations of each run; bands are the standard deviation over seeds.",
    controls, log: ["x", "y"],
    draw(page, choice) {
      const found = of(page, choice);
      if (!found.length) return { nothing: "Nothing was evaluated." };
      const lines = found.map((curve) => edgefl.line(page, curve.group, {
        x: curve.x[choice.x], y: curve[choice.y], mode: curve.round.length > 1 ? "lines" : "markers",
        text: curve.x[choice.x].map((value) => edgefl.number(value, AXES[choice.x][1])),
        hovertemplate: `%{text}<br>${choice.y} %{y:.4g}` }));
      const yaxis = choice.y === "accuracy" ? { title: "accuracy", tickformat: ".0%" } : { title: "loss" };
      return { data: [...found.flatMap((curve) => band(page, curve, choice)), ...lines],
               layout: { xaxis: { title: titled(AXES[choice.x]) }, yaxis } };
    },
    table(page, choice) {
      const rows = of(page, choice).flatMap((curve) => curve.round.map((round, place) =>
        [page.groups[curve.group].name, round, curve.x[choice.x][place], curve[choice.y][place]]));
      return { columns: ["run", "round", titled(AXES[choice.x]), choice.y], rows };
    },
  });
})();
