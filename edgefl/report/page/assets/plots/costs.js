/* Bytes, energy, work and client-seconds by part, phase and ending. */
(() => {
  const { series } = edgefl;
  const ENDINGS = [
    ["merged", "merged (useful)"],
    ["late", "late (wasted)"],
    ["lost", "lost (wasted)"],
    ["cut", "cut (wasted)"],
  ];
  const ENDING_UNITS = { bytes: "B", joules: "J", flops: "FLOP", client_s: "s", jobs: "" };
  const WAYS = ["down", "up"];

  /* What can be shown: [label, title of the axis, unit, (costs) -> [[part, amount]]]. */
  const byEnding = (key) => (one) => ENDINGS.map(([ending, label]) => [label, one.endings[ending]?.[key]]);
  const SHOWN = {
    "bytes-part": [
      "bytes by part",
      "bytes of all clients",
      "B",
      (one) =>
        Object.entries(one.bytes_by_part).flatMap(([part, moved]) =>
          WAYS.map((way) => [`${part}, ${way}`, moved[way]]),
        ),
    ],
    "bytes-ending": ["bytes by ending", "bytes of all clients", "B", byEnding("bytes")],
    "joules-phase": [
      "energy by phase",
      "energy of all clients",
      "J",
      (one) => Object.entries(one.joules_by_phase),
    ],
    "joules-ending": ["energy by ending", "energy of all clients", "J", byEnding("joules")],
    "client_s-ending": ["client-seconds by ending", "client-seconds", "s", byEnding("client_s")],
    "flops-ending": ["operations by ending", "operations of all clients", "FLOP", byEnding("flops")],
    "jobs-ending": ["jobs by ending", "jobs", "", byEnding("jobs")],
  };

  /* Parts of one payload share a colour; what is sent has a pattern. */
  function marker(part, place, choice) {
    if (choice.what !== "bytes-part") return series.filled(place);
    return series.filled(Math.floor(place / WAYS.length), place % WAYS.length ? "/" : "");
  }

  /* The parts with an amount in any group, by their place among all, and each group's amounts. */
  function amounts(page, choice) {
    const found = page.costs.map(
      (one) => new Map(SHOWN[choice.what][3](one).filter(([, amount]) => edgefl.known(amount))),
    );
    const all = series.distinct(
      page.costs.flatMap((one) => SHOWN[choice.what][3](one).map(([part]) => part)),
    );
    const parts = all.filter((part) => found.some((one) => one.get(part) > 0));
    return { found, parts, all };
  }

  function bars(page, { found, parts, all }, choice, xs) {
    const [, , unit] = SHOWN[choice.what];
    const shareOf = (part, at) => (found[at].get(part) ?? 0) / (totals[at] || 1);
    const totals = found.map((one) => parts.reduce((sum, part) => sum + (one.get(part) ?? 0), 0));
    return parts.map((part) => ({
      type: "bar",
      orientation: "h",
      name: edgefl.text(part),
      marker: marker(part, all.indexOf(part), choice),
      y: page.costs.map((_, at) => at),
      x: found.map((one, at) => xs.of(choice.share ? shareOf(part, at) : (one.get(part) ?? 0))),
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

  /* Idle power while uploads wait for the server is no part of the energy, so it is told beside it. */
  function waiting(page, choice) {
    if (choice.what !== "joules-phase") return "";
    const known = page.costs.filter((one) => edgefl.known(one.waiting_joules) && one.waiting_joules > 0);
    if (!known.length) return "";
    const told = known.map(
      (one) => `${series.groupName(page, one.group)} ${edgefl.number(one.waiting_joules, "J")}`,
    );
    const what = "idle while uploads wait for the server";
    return `Not in the bars, since it is no part of the energy: ${what}, ${series.listed(told)}.`;
  }

  /* Groups without a bar, and those whose energy is that of some clients alone. */
  function missing(page, found) {
    const names = page.costs
      .filter((_, at) => !found[at].size)
      .map((one) => series.groupName(page, one.group));
    return names.length ? `Unknown of ${series.listed(names)}: a number that it needs is unknown.` : "";
  }

  function partly(page) {
    const told = page.costs
      .filter((one) => one.energy_known && one.energy_known < one.energy_clients)
      .map(({ group, energy_known: some, energy_clients: all }) => {
        const [known, of] = [some, all].map((clients) => edgefl.number(clients));
        return `${series.groupName(page, group)} ${known} of ${of}`;
      });
    return told.length
      ? `The energy is of those clients alone whose energy is known: ${series.listed(told)}.`
      : "";
  }

  edgefl.plot({
    id: "costs",
    section: "costs",
    title: "What was spent, and on what",
    groups: false,
    why:
      "Means over seeds. Only jobs that were merged are useful: what late, lost and cut jobs cost is" +
      " wasted.",
    controls: (page) => [
      {
        name: "what",
        label: "Show",
        kind: "select",
        options: Object.keys(SHOWN)
          .filter((what) => amounts(page, { what }).parts.length)
          .map((value) => ({ value, label: SHOWN[value][0] })),
      },
      { name: "share", label: "As shares", kind: "check" },
    ],
    height: (page) => series.rowsHeight(page.costs.length) + 30,
    draw(page, choice) {
      if (!page.costs.length || !choice.what)
        return { nothing: "Nothing to draw: no job has ended yet, so nothing was spent." };
      const { found, parts, all } = amounts(page, choice);
      const [, title, unit] = SHOWN[choice.what];
      const totals = found.map((one) => parts.reduce((sum, part) => sum + (one.get(part) ?? 0), 0));
      const xs = choice.share
        ? edgefl.axis(`share of ${title}`, "share", [1])
        : edgefl.axis(title, unit, totals);
      const rows = page.costs.map((one) => edgefl.text(page.groups[one.group].name));
      return {
        data: bars(page, { found, parts, all }, choice, xs),
        note: [missing(page, found), unit === "J" && partly(page), waiting(page, choice)]
          .filter(Boolean)
          .join(" "),
        layout: {
          ...series.legend,
          barmode: "stack",
          bargap: 0.3,
          xaxis: xs.layout,
          yaxis: series.rows(rows),
        },
      };
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
        rows.push([name, "idle while waiting, no part of the energy", "", "J", one.waiting_joules]);
        for (const [ending, spent] of Object.entries(one.endings)) {
          for (const [key, unit] of Object.entries(ENDING_UNITS))
            rows.push([name, `${key} by ending`, ending, unit, spent[key]]);
        }
      }
      return { columns: ["run", "figure", "of", "unit", "mean over seeds"], rows };
    },
  });
})();
