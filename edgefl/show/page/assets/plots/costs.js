/* Bars of a group each: bytes and energy by part and phase, and what was useful and what wasted. */
(() => {
  const { series } = edgefl;
  const WAYS = ["down", "up"];

  // What became of jobs: colours from cool to warm, patterns for those who do not see colours.
  const ENDINGS = {
    merged: ["merged (useful)", "#0072b2", ""],
    late: ["late (wasted)", "#e69f00", "/"],
    lost: ["lost (wasted)", "#d55e00", "x"],
    cut: ["cut (wasted)", "#cc79a7", "."],
  };
  const byEnding = (key) => (one) =>
    Object.entries(ENDINGS).map(([ending, [label]]) => [label, one.endings[ending]?.[key]]);

  /* What can be shown: [label, title of the axis, unit, (costs) -> [[part, amount]]]. */
  const WASTE = {
    client_s: ["client time", "time of all clients", "s", byEnding("client_s")],
    bytes: ["bytes", "bytes of all clients", "B", byEnding("bytes")],
    joules: ["energy", "energy of all clients", "J", byEnding("joules")],
    flops: ["operations", "operations of all clients", "FLOP", byEnding("flops")],
    jobs: ["jobs", "jobs", "", byEnding("jobs")],
  };
  const COSTS = {
    bytes: [
      "bytes by part",
      "bytes of all clients",
      "B",
      (one) =>
        Object.entries(one.bytes_by_part).flatMap(([part, moved]) =>
          WAYS.map((way) => [`${part}, ${way}`, moved[way]]),
        ),
    ],
    joules: ["energy by phase", "energy of all clients", "J", (one) => Object.entries(one.joules_by_phase)],
  };

  /* Parts of one payload share a colour; what is sent up has a pattern. */
  const MARKERS = {
    bytes: (place) => series.filled(Math.floor(place / WAYS.length), place % WAYS.length ? "/" : ""),
    joules: (place) => series.filled(place),
    ending: (place) => {
      const [, color, shape] = Object.values(ENDINGS)[place];
      return { ...series.filled(0, shape), color };
    },
  };

  /* The parts with an amount in any group, by their place among all, and each group's amounts. */
  function amounts(page, [, , , of]) {
    const found = page.costs.map((one) => new Map(of(one).filter(([, amount]) => edgefl.known(amount))));
    const all = series.distinct(page.costs.flatMap((one) => of(one).map(([part]) => part)));
    const parts = all.filter((part) => found.some((one) => one.get(part) > 0));
    const totals = found.map((one) => parts.reduce((sum, part) => sum + (one.get(part) ?? 0), 0));
    return { found, parts, all, totals };
  }

  function bars(page, { found, parts, all, totals }, { unit, share, marker, xs }) {
    const shareOf = (part, at) => (found[at].get(part) ?? 0) / (totals[at] || 1);
    return parts.map((part) => ({
      type: "bar",
      orientation: "h",
      name: edgefl.text(part),
      marker: marker(all.indexOf(part)),
      y: page.costs.map((_, at) => at),
      x: found.map((one, at) => xs.of(share ? shareOf(part, at) : (one.get(part) ?? 0))),
      text: found.map((one, at) =>
        series.hover(
          series.groupName(page, page.costs[at].group),
          `${part}: ${edgefl.number(one.get(part) ?? 0, unit)}`,
          `${edgefl.number(shareOf(part, at), "share")} of ${edgefl.number(totals[at], unit)}`,
        ),
      ),
      textposition: "none",
      hovertemplate: "%{text}<extra></extra>",
    }));
  }

  function draw(page, what, share, marker) {
    const [, title, unit] = what;
    const found = amounts(page, what);
    const xs = share ? edgefl.axis(`share of ${title}`, "share", [1]) : edgefl.axis(title, unit, found.totals);
    const rows = page.costs.map((one) => edgefl.text(page.groups[one.group].name));
    return {
      data: bars(page, found, { unit, share, marker, xs }),
      note: series.sentences(missing(page, found.found), unit === "J" && partly(page)),
      layout: { ...series.legend, barmode: "stack", bargap: 0.3, xaxis: xs.layout, yaxis: series.rows(rows) },
    };
  }

  /* Idle power while uploads wait for the server is no part of the energy, so it is told beside it. */
  function waiting(page) {
    const known = page.costs.filter((one) => edgefl.known(one.waiting_joules) && one.waiting_joules > 0);
    const told = known.map(
      (one) => `${series.groupName(page, one.group)} ${edgefl.number(one.waiting_joules, "J")}`,
    );
    return told.length
      ? `Not included: idle energy while uploads wait for the server, ${series.listed(told)}.`
      : "";
  }

  /* Groups without a bar, and those whose energy is that of some clients alone. */
  function missing(page, found) {
    const bare = page.costs.filter((_, at) => !found[at].size);
    const named = (wanted) => series.listed(bare.filter(wanted).map((one) => series.groupName(page, one.group)));
    const isIdle = (one) => Object.values(one.endings).every(({ jobs }) => !jobs);
    const [idle, unknown] = [named(isIdle), named((one) => !isIdle(one))];
    return series.sentences(
      idle && `No job has ended of ${idle}.`,
      unknown && `Unknown of ${unknown}: a number that it needs is unknown.`,
    );
  }

  function partly(page) {
    const told = page.costs
      .filter((one) => one.energy_of)
      .map((one) => `${series.groupName(page, one.group)} ${one.energy_of}`);
    return told.length ? `The energy is that of some clients: ${told.join("; ")}.` : "";
  }

  const controls = (shown) => (page) => [
    {
      name: "what",
      label: "Show",
      kind: "radio",
      options: Object.keys(shown)
        .filter((what) => amounts(page, shown[what]).parts.length)
        .map((value) => ({ value, label: shown[value][0] })),
    },
    { name: "share", label: "As shares", kind: "check" },
  ];
  const height = (page) => series.namesHeight(page) + 30;
  const NOTHING = "Nothing to draw: no job has ended yet, so nothing was spent.";
  const isWasted = ({ endings }) =>
    Object.entries(endings).some(([ending, { jobs }]) => ending !== "merged" && jobs > 0);

  edgefl.plot({
    id: "waste",
    section: "costs",
    title: "Useful and wasted",
    groups: false,
    why: "Only jobs that were merged are useful: what late, lost and cut jobs took is wasted. Means over seeds.",
    controls: (page) => (page.costs.some(isWasted) ? controls(WASTE)(page) : []),
    height,
    draw(page, choice) {
      if (!page.costs.length) return { nothing: NOTHING };
      if (!choice.what) return { nothing: "Nothing to draw: no job was late, lost or cut, so nothing was wasted." };
      return draw(page, WASTE[choice.what], choice.share, MARKERS.ending);
    },
    table(page) {
      const rows = page.costs.flatMap((one) =>
        Object.entries(one.endings).flatMap(([ending, spent]) =>
          Object.entries(WASTE).map(([key, [label, , unit]]) => [
            series.groupName(page, one.group),
            ending,
            label,
            unit,
            spent[key],
          ]),
        ),
      );
      return { columns: ["run", "ending", "figure", "unit", "mean over seeds"], rows };
    },
  });

  edgefl.plot({
    id: "costs",
    section: "costs",
    title: "Bytes by part and energy by phase",
    groups: false,
    why: "What all jobs took, useful or wasted. Means over seeds.",
    controls: controls(COSTS),
    height,
    draw(page, choice) {
      if (!page.costs.length || !choice.what) return { nothing: NOTHING };
      const drawn = draw(page, COSTS[choice.what], choice.share, MARKERS[choice.what]);
      return choice.what === "joules" ? { ...drawn, note: series.sentences(drawn.note, waiting(page)) } : drawn;
    },
    table(page) {
      const rows = [];
      for (const one of page.costs) {
        const name = series.groupName(page, one.group);
        for (const [part, moved] of Object.entries(one.bytes_by_part)) {
          for (const way of WAYS) rows.push([name, "bytes by part", `${part}, ${way}`, "B", moved[way]]);
        }
        for (const [phase, joules] of Object.entries(one.joules_by_phase))
          rows.push([name, "energy by phase", phase, "J", joules]);
        rows.push([name, "idle while waiting, not included", "", "J", one.waiting_joules]);
      }
      return { columns: ["run", "figure", "of", "unit", "mean over seeds"], rows };
    },
  });
})();
