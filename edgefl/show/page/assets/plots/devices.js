/* Energy by class of devices, and the share of a battery that a round takes. */
(() => {
  const { series } = edgefl;
  const SHOWN = {
    joules_per_round: ["energy per client and round", "J"],
    joules: ["energy of all its clients", "J"],
    per_round: ["share of a full battery per round", "share"],
    per_day: ["share of a full battery per day", "share"],
  };
  // How much of a row its groups take.
  const SPREAD = 0.7;
  const LOW = "per_round_between.low";
  const HIGH = "per_round_between.high";
  const every = (page) =>
    page.costs.flatMap(({ group, devices }) =>
      Object.entries(devices).map(([device, use]) => ({ group, device, ...use })),
    );
  const of = (page, what) => every(page).filter((one) => edgefl.known(one[what]));

  function words(page, one) {
    const bounds = edgefl.known(one[LOW])
      ? ` (${edgefl.number(one[LOW], "share")} to ${edgefl.number(one[HIGH], "share")})`
      : "";
    return series.hover(
      series.groupName(page, one.group),
      `${one.device}, ${edgefl.number(one.clients)} clients`,
      `all its clients: ${edgefl.number(one.joules, "J")}`,
      `per client and round: ${edgefl.number(one.joules_per_round, "J")}`,
      edgefl.known(one.per_round)
        ? `of its battery per round: ${edgefl.number(one.per_round, "share")}${bounds}`
        : "no battery",
      edgefl.known(one.per_day)
        ? `of its battery per day: ${edgefl.number(one.per_day, "share")}`
        : "",
    );
  }

  /* Groups side by side in the row of their device. */
  function trace(page, group, found, { devices, groups, what, xs }) {
    const own = found.filter((one) => one.group === group);
    const shift = groups.length > 1 ? (groups.indexOf(group) / (groups.length - 1) - 0.5) * SPREAD : 0;
    const drawn = {
      x: own.map((one) => xs.of(one[what])),
      y: own.map((one) => devices.indexOf(one.device) + shift),
      text: own.map((one) => words(page, one)),
      hovertemplate: "%{text}<extra></extra>",
    };
    if (what === "per_round" && own.some((one) => edgefl.known(one[LOW]))) {
      const bound = (one, key) => xs.of(one[key] ?? one[what]);
      drawn.error_x = {
        type: "data",
        symmetric: false,
        thickness: 1.5,
        width: 4,
        array: own.map((one, at) => bound(one, HIGH) - drawn.x[at]),
        arrayminus: own.map((one, at) => drawn.x[at] - bound(one, LOW)),
      };
    }
    return edgefl.line(page, group, {
      ...drawn,
      mode: "markers",
      marker: {
        size: groups.length > 8 ? 7 : 11,
        symbol: series.look(group).symbol,
        color: page.groups[group].colour,
      },
    });
  }

  edgefl.plot({
    id: "devices",
    section: "devices",
    title: "Energy by class of devices",
    why:
      "The energy of the clients with each device; means over seeds. Bars at a share of the battery are its" +
      " bounds.",
    controls: (page) => [
      {
        name: "what",
        label: "Show",
        kind: "radio",
        options: Object.keys(SHOWN)
          .filter((what) => of(page, what).length)
          .map((value) => ({ value, label: SHOWN[value][0] })),
      },
      { name: "log_x", label: "Log x", kind: "check" },
    ],
    height: (page, choice) =>
      series.rowsHeight(
        series.distinct(of(page, choice.what).map((one) => one.device)).length,
        Math.min(Math.max(page.groups.length * 10, 40), 70),
      ),
    draw(page, choice) {
      if (!every(page).length) return { nothing: "Nothing to draw: no client has done anything yet." };
      const found = choice.what ? of(page, choice.what) : [];
      if (!found.length)
        return {
          nothing: "Nothing to draw: no energy is known. A number that it needs is unknown of every device.",
        };
      const [title, unit] = SHOWN[choice.what];
      const xs = edgefl.axis(
        title,
        unit,
        found.map((one) => one[choice.what]),
        { log: choice.log_x, ...(choice.log_x ? {} : { rangemode: "tozero" }) },
      );
      const devices = series.distinct(found.map((one) => one.device)).sort();
      const groups = series.distinct(found.map((one) => one.group));
      const unknown = series
        .distinct(every(page).map((one) => one.device))
        .filter((device) => !devices.includes(device));
      const why = choice.what.startsWith("per_") ? "no battery, or an unknown energy" : "unknown energy";
      return {
        data: groups.map((group) => trace(page, group, found, { devices, groups, what: choice.what, xs })),
        note: unknown.length ? `Not drawn, ${why}: ${series.listed(unknown)}.` : "",
        layout: {
          xaxis: xs.layout,
          yaxis: series.rows(devices.map(edgefl.text)),
          shapes: series.between(devices.length),
        },
      };
    },
    table(page) {
      const rows = every(page).map((one) => [
        series.groupName(page, one.group),
        one.device,
        one.clients,
        one.joules,
        one.joules_per_round,
        one.per_round,
        one[LOW],
        one[HIGH],
      ]);
      return {
        columns: [
          "run",
          "device",
          "clients",
          "energy of all (J)",
          "energy of a client a round (J)",
          "share of a battery a round",
          "at least",
          "at most",
        ],
        rows,
      };
    },
  });
})();
