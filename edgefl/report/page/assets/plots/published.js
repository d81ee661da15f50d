/* Savings that papers claim, beside those of the runs. */
(() => {
  const { series } = edgefl;
  const nameOf = (one) => `${one.method} against ${one.against}: ${one.figure} of ${one.exchange}`;

  function marks(name, { color, symbol }, points) {
    return {
      type: "scatter",
      mode: "markers",
      name,
      hovertemplate: "%{text}<extra></extra>",
      marker: { color, symbol, size: 12, line: { width: 2 } },
      x: points.map(([x]) => x),
      y: points.map(([, y]) => y),
      text: points.map(([, , text]) => text),
    };
  }

  function ours(page, one, saving) {
    const names = [saving.group, saving.against_group].map((group) => series.groupName(page, group));
    return series.hover(
      nameOf(one),
      `${names[0]} saves ${edgefl.number(saving.saved, "share")}`,
      `of the ${edgefl.number(saving.against, one.unit)} of ${names[1]}`,
      `${saving.model} on ${saving.device}`,
    );
  }

  edgefl.plot({
    id: "published",
    section: "published",
    title: "Published and reproduced savings",
    groups: false,
    why: "The largest share that a paper says its method saves, and what these runs save on each device.",
    height: (page) => series.rowsHeight(page.published.length, 60),
    draw(page) {
      const claims = page.published;
      if (!claims.length) return { nothing: "Nothing to draw: no scenario quotes published figures." };
      const known = claims.flatMap((one, row) =>
        one.ours.filter((each) => edgefl.known(each.saved)).map((each) => [one, row, each]),
      );
      const xs = edgefl.axis("share saved", "share", [1], { zeroline: true });
      const published = claims.map((one, row) => [
        xs.of(one.published),
        row,
        series.hover(nameOf(one), `published: up to ${edgefl.number(one.published, "share")}`, one.source),
      ]);
      const own = known.map(([one, row, each]) => [xs.of(each.saved), row + 0.18, ours(page, one, each)]);
      const notes = claims.filter((one) => one.why).map((one) => `${nameOf(one)}: ${one.why}.`);
      return {
        data: [
          marks("published", { color: "#0072b2", symbol: "diamond-open" }, published),
          marks("ours", { color: "#d55e00", symbol: "circle" }, own),
        ],
        note: series.distinct(notes).join(" "),
        layout: {
          ...series.legend,
          xaxis: xs.layout,
          yaxis: series.rows(claims.map((one) => edgefl.text(nameOf(one)))),
        },
      };
    },
    table(page) {
      const rows = page.published.flatMap((one) =>
        (one.ours.length ? one.ours : [{}]).map((each) => [
          one.method,
          one.against,
          one.exchange,
          one.figure,
          one.published,
          each.saved,
          each.against,
          one.unit,
          each.model,
          each.device,
          one.source,
          one.note,
          one.why,
        ]),
      );
      return {
        columns: [
          "method",
          "against",
          "exchange",
          "figure",
          "published share saved",
          "our share saved",
          "of",
          "unit",
          "model",
          "device",
          "source",
          "note",
          "why there is none of ours",
        ],
        rows,
      };
    },
  });
})();
