/* Accuracy or loss over time, rounds, epochs, bytes, energy or client-seconds, with a band over seeds. */
(() => {
  const { series } = edgefl;
  const UNITS = { accuracy: "share", loss: "" };
  // With more points or more lines than these, lines have no markers.
  const MARKED = 30;
  // Bands may reach beyond 0% and 100%, accuracies do not.
  const SHARES = { autorangeoptions: { clipmin: -1, clipmax: 101 } };
  const of = (page, choice) =>
    page.curves.filter(
      (curve) => curve.model === choice.model && curve.x[choice.x] && curve[choice.y].some(edgefl.known),
    );

  function controls(page) {
    const axes = Object.keys(page.axes).filter((axis) => page.curves.some((curve) => curve.x[axis]));
    const models = ["global", "personal"].filter((model) =>
      page.curves.some((curve) => curve.model === model),
    );
    return [
      {
        name: "y",
        label: "Show",
        kind: "radio",
        options: Object.keys(UNITS).map((value) => ({ value, label: value })),
      },
      {
        name: "x",
        label: "Against",
        kind: "radio",
        options: axes.map((value) => ({ value, label: page.axes[value].label })),
      },
      {
        name: "model",
        label: "Model",
        kind: "radio",
        options: models.map((value) => ({ value, label: value })),
      },
      { name: "log_x", label: "Log x", kind: "check" },
      { name: "log_y", label: "Log y", kind: "check" },
    ];
  }

  function band(page, curve, places, { x, y }, xs, ys) {
    const [low, high] = [curve[`${y}_low`], curve[`${y}_high`]];
    if (!low) return [];
    const back = [...places].reverse();
    // On a log axis a band cannot reach zero: there it ends at the mean.
    const down = back.map((place) => ys.of(low[place]) ?? ys.of(curve[y][place]));
    return [
      {
        type: "scatter",
        mode: "lines",
        group: curve.group,
        showlegend: false,
        hoverinfo: "skip",
        fill: "toself",
        fillcolor: edgefl.faint(page.groups[curve.group].colour),
        line: { width: 0 },
        x: [...places, ...back].map((place) => xs.of(curve.x[x][place])),
        y: [...places.map((place) => ys.of(high[place])), ...down],
      },
    ];
  }

  function line(page, curve, places, choice, { xs, ys, marked }) {
    const { x, y } = choice;
    const low = curve[`${y}_low`];
    const spread = (place) =>
      low ? ` ± ${edgefl.number(curve[y][place] - low[place], UNITS[y])} (95% interval over seeds)` : "";
    const words = (place) =>
      series.hover(
        page.groups[curve.group].name,
        `${y} ${edgefl.number(curve[y][place], UNITS[y])}${spread(place)}`,
        x === "round" ? "" : `${page.axes[x].label} ${edgefl.number(curve.x[x][place], page.axes[x].unit)}`,
        `round ${edgefl.number(curve.x.round[place])}`,
      );
    return edgefl.line(page, curve.group, {
      mode: places.length === 1 || marked ? "lines+markers" : "lines",
      marker: { size: places.length === 1 ? 10 : 5, symbol: series.look(curve.group).symbol },
      x: places.map((place) => xs.of(curve.x[x][place])),
      y: places.map((place) => ys.of(curve[y][place])),
      text: places.map(words),
      hovertemplate: "%{text}<extra></extra>",
    });
  }

  function without(page, choice) {
    const drawn = new Set(of(page, choice).map((curve) => curve.group));
    const evaluated = new Set(
      page.curves
        .filter((curve) => curve.model === choice.model && curve[choice.y].some(edgefl.known))
        .map((curve) => curve.group),
    );
    const named = (wanted) =>
      series.listed(
        page.groups
          .map((_, group) => group)
          .filter((group) => !drawn.has(group) && wanted(group))
          .map((group) => series.groupName(page, group)),
      );
    const [unknown, never] = [
      named((group) => evaluated.has(group)),
      named((group) => !evaluated.has(group)),
    ];
    const left = of(page, choice).reduce((sum, curve) => sum + curve.left_out, 0);
    return [
      unknown && `Not drawn, since the ${page.axes[choice.x].label} is unknown: ${unknown}.`,
      never && `Not drawn, since no ${choice.y} of a ${choice.model} model was evaluated: ${never}.`,
      left && `${edgefl.number(left)} evaluations are not drawn, since not all seeds of their run have them.`,
      choice.x === "joules" && partly(page, choice),
    ]
      .filter(Boolean)
      .join(" ");
  }

  /* Of runs that know the energy of some clients alone. */
  function partly(page, choice) {
    const told = of(page, choice)
      .filter((curve) => page.costs[curve.group].energy_of)
      .map((curve) => `${series.groupName(page, curve.group)} ${page.costs[curve.group].energy_of}`);
    return told.length ? `The energy is that of some clients: ${told.join("; ")}.` : "";
  }

  edgefl.plot({
    id: "accuracy",
    section: "curves",
    title: "Accuracy and loss",
    why:
      "Each evaluation of a model. A band is the 95% interval of the mean over seeds (Student's t, n\u00a0-\u00a01)," +
      " at each evaluation by itself.",
    controls,
    height: 430,
    draw(page, choice) {
      if (!page.curves.length) return { nothing: "Nothing to draw: no run has evaluated a model yet." };
      const found = of(page, choice);
      if (!found.length)
        return {
          nothing: `Nothing to draw: no run has evaluated the ${choice.y} of a ${choice.model} model.`,
          chosen: true,
        };
      // A band has as many points again to either side.
      const lines = found.length * (found.some((curve) => curve.seeds.length > 1) ? 2 : 1);
      const places = found.map((curve) =>
        series
          .kept(curve[choice.y], series.budget(lines))
          .filter((place) => edgefl.known(curve[choice.y][place]) && edgefl.known(curve.x[choice.x][place])),
      );
      const { label, unit } = page.axes[choice.x];
      const along = found.flatMap((curve) => curve.x[choice.x]);
      const rounds = choice.x === "round" && !choice.log_x ? edgefl.rounds(along) : {};
      const xs = edgefl.axis(label, unit, along, { log: choice.log_x, ...rounds });
      const ys = edgefl.axis(
        choice.y,
        UNITS[choice.y],
        found.flatMap((curve) => curve[choice.y]),
        { log: choice.log_y },
      );
      const shares = choice.y === "accuracy" && !choice.log_y ? SHARES : {};
      const marked = found.length <= 12 && places.every((kept) => kept.length <= MARKED);
      const bands = found.flatMap((curve, at) => band(page, curve, places[at], choice, xs, ys));
      const means = found.map((curve, at) => line(page, curve, places[at], choice, { xs, ys, marked }));
      return {
        data: [...bands, ...means],
        layout: { xaxis: xs.layout, yaxis: { ...ys.layout, ...shares } },
        note: without(page, choice),
      };
    },
    table(page) {
      const axes = Object.keys(page.axes).filter((axis) => axis !== "round");
      const bounds = ["accuracy_low", "accuracy_high", "loss", "loss_low", "loss_high"];
      const rows = page.curves.flatMap((curve) =>
        curve.x.round.map((round, place) => [
          series.groupName(page, curve.group),
          curve.model,
          curve.seeds.length,
          round,
          ...axes.map((axis) => curve.x[axis]?.[place]),
          curve.accuracy[place],
          ...bounds.map((key) => curve[key]?.[place]),
        ]),
      );
      const units = axes
        .map((axis) => page.axes[axis])
        .map(({ label, unit }) => (unit ? `${label} (${unit})` : label));
      return { columns: ["run", "model", "seeds", "round", ...units, "accuracy", ...bounds], rows };
    },
  });
})();
