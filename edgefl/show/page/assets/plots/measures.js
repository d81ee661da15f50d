/* Measures over rounds: a line for a number, a map for one that is taken of each class or layer. */
(() => {
  const { series } = edgefl;
  // Columns of a map: more would be narrower than a point.
  const COLUMNS = 200;
  const MEDIAN = 0.5;
  const [LOW, HIGH] = [0.1, 0.9];

  const nameOf = (one) => [one.measure, one.figure, one.model].filter(Boolean).join(", ");
  const partsOf = (one) => one.labels.filter((label) => label !== "");

  /* What a measure's parts are: classes, where they have their names. */
  const kindOf = (one, classes) => (partsOf(one).every((label) => classes.has(label)) ? "class" : "part");

  const classesOf = (page) => new Set(page.partition.flatMap((each) => each.classes));

  /* What can be shown: each figure of all together, over clients if it has their quantiles, and by part. */
  function shown(page) {
    const found = new Map();
    const classes = classesOf(page);
    for (const one of page.measures.filter((each) => each.round.length)) {
      const name = nameOf(one);
      if (one.labels.includes("") && one.quantile === null) found.set(name, { name, kind: "line" });
      if (one.labels.includes("") && one.quantile === MEDIAN) {
        found.set(`${name}, over clients`, { name, kind: "quantiles" });
      }
      if (partsOf(one).length && [null, MEDIAN].includes(one.quantile)) {
        const median = one.quantile === null ? "" : ", median over clients";
        found.set(`${name}, by ${kindOf(one, classes)}${median}`, {
          name,
          kind: "map",
          quantile: one.quantile,
        });
      }
    }
    return found;
  }

  function of(page, { what }) {
    const wanted = shown(page).get(what);
    if (!wanted) return { kind: "none", found: [] };
    const same = page.measures.filter((one) => nameOf(one) === wanted.name && one.round.length);
    const quantile = wanted.kind === "quantiles" ? MEDIAN : (wanted.quantile ?? null);
    return { kind: wanted.kind, found: same.filter((one) => one.quantile === quantile), same };
  }

  function valuesOf(one) {
    const together = one.labels.indexOf("");
    return one.values.map((row) => row[together]);
  }

  function band(page, one, same, ys) {
    const [low, high] = [LOW, HIGH].map((quantile) =>
      same.find((each) => each.run === one.run && each.quantile === quantile),
    );
    if (!low || !high) return [];
    const { group } = page.runs[one.run];
    return [
      {
        type: "scatter",
        mode: "lines",
        group,
        showlegend: false,
        hoverinfo: "skip",
        fill: "toself",
        line: { width: 0 },
        fillcolor: edgefl.faint(page.groups[group].colour),
        x: [...low.round, ...[...high.round].reverse()],
        y: [...valuesOf(low), ...valuesOf(high).reverse()].map(ys.of),
      },
    ];
  }

  function line(page, one, ys, lines) {
    const { group } = page.runs[one.run];
    const values = valuesOf(one);
    const words = (place) =>
      series.hover(
        series.runName(page, one.run),
        `${nameOf(one)}: ${edgefl.number(values[place], one.unit)}`,
        `round ${one.round[place]}`,
      );
    const drawn = series.points(values, lines, {
      x: (place) => one.round[place],
      y: (place) => ys.of(values[place]),
      text: words,
    });
    const mode = one.round.length > 30 || lines > 12 ? drawn.mode : "lines+markers";
    return edgefl.line(page, group, {
      ...drawn,
      mode,
      marker: { size: 6, symbol: series.look(group).symbol },
      showlegend: one.run === page.groups[group].runs[0],
    });
  }

  function lines(page, { kind, found, same }) {
    const bounds =
      kind === "quantiles" ? same.filter((one) => one.quantile >= LOW && one.quantile <= HIGH) : found;
    const ys = edgefl.axis(nameOf(found[0]), found[0].unit, bounds.flatMap(valuesOf));
    const bands = kind === "quantiles" ? found.flatMap((one) => band(page, one, same, ys)) : [];
    return {
      data: [...bands, ...found.map((one) => line(page, one, ys, found.length))],
      note: bands.length
        ? "Lines are medians over clients, bands reach from the lowest to the highest tenth."
        : "",
      layout: { xaxis: edgefl.rounds(found.flatMap((one) => one.round)), yaxis: ys.layout },
    };
  }

  function map(one, kind) {
    const parts = partsOf(one);
    const columns = parts.map((label) => one.labels.indexOf(label));
    const places = series.spaced(one.round.length, COLUMNS);
    const ticks = series.everyNth(places.length, edgefl.narrow() ? 6 : 12);
    const value = (row, at) => one.values[places[at]][columns[row]];
    const heat = series.heat({
      rows: parts.length,
      columns: places.length,
      unit: one.unit,
      value,
      words: (row, at) => [
        `${parts[row]}, ${one.along.split(",")[0]} ${one.round[places[at]]}`,
        `${nameOf(one)}: ${edgefl.number(value(row, at), one.unit)}`,
      ],
    });
    const xaxis = {
      title: one.along,
      tickmode: "array",
      showgrid: false,
      zeroline: false,
      tickvals: ticks,
      ticktext: ticks.map((at) => String(one.round[places[at]])),
    };
    const [left, all] = [one.round.length - places.length, one.round.length].map((count) =>
      edgefl.number(count),
    );
    return {
      data: [heat],
      note: left === "0" ? "" : `${left} of ${all} rounds are not drawn; the CSV has them all.`,
      layout: { xaxis, yaxis: { ...series.rows(parts.map(edgefl.text)), title: kind } },
    };
  }

  const mapOf = (found, choice) => found.find((one) => one.run === choice.run) ?? found[0];

  edgefl.plot({
    id: "measures",
    section: "measures",
    title: "Measures",
    why: "The measures that the scenarios ask for, of each version that was evaluated.",
    controls(page, choice) {
      const options = [...shown(page).keys()].map((value) => ({ value, label: value }));
      const own = { name: "what", label: "Measure", kind: "select", options };
      const { kind, found } = of(page, { what: choice.what ?? options[0]?.value });
      return kind === "map" ? [own, series.runSwitch(page, found)] : [own];
    },
    groups: (page, choice) => of(page, choice).kind !== "map",
    height(page, choice) {
      const { kind, found } = of(page, choice);
      return kind === "map" ? series.rowsHeight(partsOf(mapOf(found, choice)).length, 26) : 380;
    },
    draw(page, choice) {
      const chosen = of(page, choice);
      if (!chosen.found.length) {
        return {
          nothing:
            "Nothing to draw: the scenarios ask for no measures, or nothing was evaluated yet. A scenario" +
            " asks for them under evaluate.measures.",
        };
      }
      return chosen.kind === "map" ? map(mapOf(chosen.found, choice), kindOf(mapOf(chosen.found, choice), classesOf(page))) : lines(page, chosen);
    },
    table(page) {
      const rows = page.measures.flatMap((one) =>
        one.round.flatMap((round, at) =>
          one.labels.map((label, place) => [
            series.runName(page, one.run),
            one.measure,
            one.figure,
            one.model,
            one.quantile,
            one.unit,
            one.version[at],
            one.along === "round" ? round : one.along.replace("client", `client ${round}`),
            label,
            one.values[at][place],
          ]),
        ),
      );
      return {
        columns: [
          "run",
          "measure",
          "figure",
          "model",
          "quantile over clients",
          "unit",
          "version",
          "round",
          "part",
          "value",
        ],
        rows,
      };
    },
  });
})();
