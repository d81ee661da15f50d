/* What exchanges need of each device's memory, beside what the device has. */
(() => {
  const { series } = edgefl;
  const REFUSED = "#d55e00";

  /* One row for each device and model, in the order of their limits. */
  function rowsOf(page, choice) {
    const found = page.memory.filter((one) => one.run === choice.run);
    const keys = series.distinct(found.map((one) => JSON.stringify([one.device, one.model])));
    const limit = (key) =>
      found.find((one) => JSON.stringify([one.device, one.model]) === key).limit_bytes ?? Infinity;
    const rows = keys.sort((one, other) => limit(one) - limit(other)).map((key) => JSON.parse(key));
    const models = series.distinct(found.map((one) => one.model));
    const label = ([device, model]) => edgefl.text(models.length > 1 ? `${device}, ${model}` : device);
    const at = (one) => rows.findIndex(([device, model]) => device === one.device && model === one.model);
    return { found, labels: rows.map(label), at };
  }

  function words(one) {
    const limit =
      one.limit_bytes === null
        ? "its limit is unknown"
        : `${edgefl.number(one.peak_bytes / one.limit_bytes, "share")} of its` +
          ` ${edgefl.number(one.limit_bytes, "B")}`;
    return series.hover(
      `${one.device}, ${one.model}`,
      `${one.exchange} needs ${edgefl.number(one.peak_bytes, "B")}`,
      limit,
      `${edgefl.number(one.clients)} clients`,
      one.refused
        ? `${edgefl.number(one.refused)} of them refused${one.reason ? `: ${one.reason}` : ""}`
        : "",
    );
  }

  const points = (found, at, x, more) => ({
    type: "scatter",
    mode: "markers",
    x: found.map(x),
    y: found.map(at),
    text: found.map(words),
    hovertemplate: "%{text}<extra></extra>",
    ...more,
  });

  function draw(page, choice) {
    if (!page.memory.length) return { nothing: "Nothing to draw: no memory need is known of these runs." };
    const { found, labels, at } = rowsOf(page, choice);
    const limits = found.filter((one) => one.limit_bytes !== null);
    const refused = found.filter((one) => one.refused);
    const xs = edgefl.axis(
      "memory of a client",
      "B",
      found.flatMap((one) => [one.peak_bytes, one.limit_bytes]),
      { log: choice.log_x },
    );
    const of = (key) => (one) => xs.of(one[key]);
    const data = series.distinct(found.map((one) => one.exchange)).map((exchange, place) => {
      const { colour, symbol } = series.look(place);
      return points(
        found.filter((one) => one.exchange === exchange),
        at,
        of("peak_bytes"),
        { name: `need of ${edgefl.text(exchange)}`, marker: { color: colour, symbol, size: 11 } },
      );
    });
    data.push(
      points(limits, at, of("limit_bytes"), {
        name: "limit of the device",
        marker: { symbol: "line-ns-open", size: 18, color: edgefl.colour("--ink"), line: { width: 3 } },
      }),
    );
    if (refused.length) {
      data.push(
        points(refused, at, of("peak_bytes"), {
          name: "refused: needs more than it may use",
          marker: { symbol: "x-thin-open", size: 18, color: REFUSED, line: { width: 3 } },
        }),
      );
    }
    const told = refused.map(
      (one) => `${edgefl.number(one.refused)} clients (${one.device}, ${one.model}: ${one.exchange})`,
    );
    const refusals = told.length
      ? `Refused: ${series.listed(series.distinct(told))}.`
      : "Nobody was refused.";
    const unknown = series.distinct(found.filter((one) => one.limit_bytes === null).map((one) => one.device));
    const note = unknown.length ? `${refusals} The limit is unknown of ${series.listed(unknown)}.` : refusals;
    return {
      data,
      note,
      layout: { ...series.legend, xaxis: xs.layout, yaxis: { ...series.rows(labels), showgrid: true } },
    };
  }

  edgefl.plot({
    id: "memory",
    section: "memory",
    title: "Memory against each device's limit",
    groups: false,
    why: "The most memory that each exchange needs at once, and what the device has.",
    controls: (page) => [
      series.runSwitch(page, page.memory),
      { name: "log_x", label: "Log x", kind: "check", initial: true },
    ],
    height: (page, choice) => series.rowsHeight(rowsOf(page, choice).labels.length, 40),
    draw,
    table(page) {
      const rows = page.memory.map((one) => [
        series.runName(page, one.run),
        one.device,
        one.model,
        one.exchange,
        one.peak_bytes,
        one.limit_bytes,
        one.clients,
        one.refused,
      ]);
      return {
        columns: ["run", "device", "model", "exchange", "need (B)", "limit (B)", "clients", "refused"],
        rows,
      };
    },
  });
})();
