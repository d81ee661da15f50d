/* Measures over rounds: a line for a number, a map for one that is taken of each class or layer. */
(() => {
  const { series } = edgefl;
  const QUANTILES = {
    0: "least",
    0.1: "lowest tenth",
    0.5: "median",
    0.9: "highest tenth",
    1: "largest",
  };
  const MEDIAN = 0.5;
  const overClients = (one) => one.quantile !== null;
  const isMain = (one) => !overClients(one) || one.quantile === MEDIAN;
  const keyOf = (one) =>
    [one.measure, one.figure, one.model, overClients(one) && "over clients"].filter(Boolean).join(", ");
  const quantileOf = (one) => (overClients(one) ? `${QUANTILES[one.quantile]} of clients` : "");
  const COLUMNS = 200;
  const isMap = (one) => one.labels.some((label) => label !== "");

  function lines(page, found) {
    const { unit } = found[0];
    const ys = edgefl.axis(
      keyOf(found[0]),
      unit,
      found.flatMap((one) => one.values.map(([value]) => value)),
    );
    const data = found.map((one) => {
      const { group } = page.runs[one.run];
      const values = one.values.map(([value]) => value);
      const words = (place) =>
        series.hover(
          series.runName(page, one.run),
          `${keyOf(one)}: ${edgefl.number(values[place], unit)}`,
          quantileOf(one),
          `round ${one.round[place]}`,
        );
      const of = { x: (place) => one.round[place], y: (place) => ys.of(values[place]), text: words };
      const mode = one.round.length > 30 || found.length > 12 ? "lines" : "lines+markers";
      return edgefl.line(page, group, {
        ...series.points(values, found.length, of),
        mode,
        ...(isMain(one) ? {} : { line: { width: 1, dash: "dot", color: page.groups[group].colour } }),
        marker: { size: 6, symbol: series.look(group).symbol },
        showlegend: isMain(one) && one.run === page.groups[group].runs[0],
      });
    });
    return { data, layout: { xaxis: edgefl.rounds(found.flatMap((one) => one.round)), yaxis: ys.layout } };
  }

  function map(one) {
    const { unit } = one;
    const scale = unit === "share" ? 100 : 1;
    const places = series.spaced(one.round.length, COLUMNS);
    const ticks = series.spaced(places.length, 12);
    const value = (place, row) => one.values[place][row];
    const words = (place, row) =>
      series.hover(
        `${one.labels[row] || "all"}, round ${one.round[place]}`,
        quantileOf(one),
        `${keyOf(one)}: ${edgefl.number(value(place, row), unit)}`,
      );
    const each = (of) => one.labels.map((_, row) => places.map((place) => of(place, row)));
    const heat = {
      type: "heatmap",
      colorscale: "Cividis",
      xgap: places.length > 60 ? 0 : 1,
      ygap: 1,
      hoverongaps: false,
      x: places.map((_, at) => at),
      y: one.labels.map((_, row) => row),
      text: each(words),
      z: each((place, row) => (edgefl.known(value(place, row)) ? value(place, row) * scale : null)),
      hovertemplate: "%{text}<extra></extra>",
      colorbar: {
        title: { text: scale > 1 ? "" : edgefl.text(unit) },
        ticksuffix: scale > 1 ? "%" : "",
        thickness: 14,
      },
    };
    const xaxis = {
      title: "round",
      tickmode: "array",
      showgrid: false,
      zeroline: false,
      tickvals: ticks,
      ticktext: ticks.map((at) => String(one.round[places[at]])),
    };
    const left = one.round.length - places.length;
    return {
      data: [heat],
      note: left
        ? `${edgefl.number(left)} of ${edgefl.number(one.round.length)} rounds are not drawn;` +
          " the CSV has them all."
        : "",
      layout: { xaxis, yaxis: series.rows(one.labels.map((label) => edgefl.text(label || "all"))) },
    };
  }

  const of = (page, choice) => page.measures.filter((one) => keyOf(one) === choice.what && one.round.length);
  const mapOf = (found, choice) => {
    const main = found.filter(isMain);
    return main.find((one) => one.run === choice.run) ?? main[0];
  };

  edgefl.plot({
    id: "measures",
    section: "measures",
    title: "Measures",
    why: "What the scenarios' measures say of each version that was evaluated.",
    controls(page, choice) {
      const whats = series.distinct(page.measures.filter((one) => one.round.length).map(keyOf));
      const own = {
        name: "what",
        label: "Measure",
        kind: "select",
        options: whats.map((value) => ({ value, label: value })),
      };
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
        return {
          nothing:
            "Nothing to draw: the scenarios ask for no measures, or nothing was evaluated yet. A scenario" +
            " asks for them under evaluate.measures.",
        };
      }
      return found.some(isMap) ? map(mapOf(found, choice)) : lines(page, found);
    },
    table(page) {
      const rows = page.measures.flatMap((one) =>
        one.round.flatMap((round, at) =>
          one.labels.map((label, place) => [
            series.runName(page, one.run),
            one.measure,
            one.figure,
            one.model,
            quantileOf(one),
            one.unit,
            round,
            label,
            one.values[at][place],
          ]),
        ),
      );
      const columns = ["run", "measure", "figure", "model", "of clients", "unit", "round", "label", "value"];
      return { columns, rows };
    },
  });
})();
