/* Measures over rounds: a line for a number, a map for one that is taken of each class or layer. */
(() => {
  const { series } = edgefl;
  const unitOf = (one) => (one.unit === "share" ? "share" : one.unit);
  const keyOf = (one) => [one.measure, one.figure, one.model].filter(Boolean).join(", ");
  const isMap = (one) => one.labels.some((label) => label !== "");

  function lines(page, found) {
    const unit = unitOf(found[0]);
    const xs = edgefl.axis("round", "", []);
    const ys = edgefl.axis(keyOf(found[0]), unit, found.flatMap((one) => one.values.map(([value]) => value)));
    const data = found.map((one) => {
      const { group } = page.runs[one.run];
      const values = one.values.map(([value]) => value);
      const words = (place) => series.hover(series.runName(page, one.run), `${keyOf(one)}: ${edgefl.number(values[place], unit)}`,
        `round ${one.round[place]}`);
      const of = { x: (place) => one.round[place], y: (place) => ys.of(values[place]), text: words };
      const mode = one.round.length > 30 || found.length > 12 ? "lines" : "lines+markers";
      return edgefl.line(page, group, { ...series.points(values, found.length, of), mode,
        marker: { size: 6, symbol: series.look(group).symbol }, showlegend: one.run === page.groups[group].runs[0] });
    });
    return { data, layout: { xaxis: xs.layout, yaxis: ys.layout } };
  }

  function map(one) {
    const unit = unitOf(one);
    const scale = unit === "share" ? 100 : 1;
    const words = (value, label, round) => series.hover(`${label}, round ${round}`, `${keyOf(one)}: ${edgefl.number(value, unit)}`);
    const rounds = one.round.map(String);
    const every = Math.ceil(rounds.length / 12);
    return {
      data: [{
        type: "heatmap", x: rounds.map((_, at) => at), y: one.labels.map((_, at) => at), colorscale: "Cividis", xgap: rounds.length > 60 ? 0 : 1, ygap: 1,
        z: one.labels.map((_, row) => one.values.map((values) => (edgefl.known(values[row]) ? values[row] * scale : null))),
        text: one.labels.map((label, row) => one.values.map((values, at) => words(values[row], label, one.round[at]))),
        hovertemplate: "%{text}<extra></extra>", hoverongaps: false,
        colorbar: { title: { text: unit === "share" ? "" : edgefl.text(unit) }, ticksuffix: unit === "share" ? "%" : "", thickness: 14 },
      }],
      layout: {
        xaxis: { title: "round", tickmode: "array", showgrid: false, zeroline: false, tickvals: rounds.map((_, at) => at).filter((at) => at % every === 0),
                 ticktext: rounds.filter((_, at) => at % every === 0) },
        yaxis: series.rows(one.labels.map((label) => edgefl.text(label))),
      },
    };
  }

  const of = (page, choice) => page.measures.filter((one) => keyOf(one) === choice.what && one.round.length);
  const mapOf = (found, choice) => found.find((one) => one.run === choice.run) ?? found[0];

  edgefl.plot({
    id: "measures", section: "measures", title: "Measures",
    why: "What the scenarios' measures say of each version that was evaluated.",
    controls(page, choice) {
      const whats = series.distinct(page.measures.filter((one) => one.round.length).map(keyOf));
      const own = { name: "what", label: "Measure", kind: "select", options: whats.map((value) => ({ value, label: value })) };
      const found = of(page, { what: choice.what ?? whats[0] });
      return found.some(isMap) ? [own, series.runSwitch(page, found)] : [own];
    },
    groups: (page, choice) => !of(page, choice).some(isMap),
    height(page, choice) {
      const found = of(page, choice);
      return found.some(isMap) ? series.rowsHeight(mapOf(found, choice).labels.length, 26) : 380;
    },
    draw(page, choice) {
      const found = of(page, choice);
      if (!found.length) {
        return { nothing: "Nothing to draw: the scenarios ask for no measures, or nothing was evaluated yet. A scenario asks"
          + " for them under evaluate.measures." };
      }
      return found.some(isMap) ? map(mapOf(found, choice)) : lines(page, found);
    },
    table(page) {
      const rows = page.measures.flatMap((one) => one.round.flatMap((round, at) => one.labels.map((label, place) =>
        [series.runName(page, one.run), one.measure, one.figure, one.model, one.unit, round, label, one.values[at][place]])));
      return { columns: ["run", "measure", "figure", "model", "unit", "round", "label", "value"], rows };
    },
  });
})();
