/* Bytes, energy, work and client-seconds by part, phase and ending. */
(() => {
  const { series } = edgefl;
  const ENDINGS = [["merged", "merged (useful)"], ["late", "late (wasted)"], ["lost", "lost (wasted)"], ["cut", "cut (wasted)"]];
  const ENDING_UNITS = { bytes: "B", joules: "J", flops: "FLOP", client_s: "s", jobs: "" };
  const WAYS = ["down", "up"];

  /* What can be shown: [label, title of the axis, unit, (costs) -> [[part, amount]]]. */
  const byEnding = (key) => (one) => ENDINGS.map(([ending, label]) => [label, one.endings[ending]?.[key]]);
  const SHOWN = {
    "bytes-part": ["bytes by part", "bytes of all clients", "B", (one) => Object.entries(one.bytes_by_part)
      .flatMap(([part, moved]) => WAYS.map((way) => [`${part}, ${way}`, moved[way]]))],
    "bytes-ending": ["bytes by ending", "bytes of all clients", "B", byEnding("bytes")],
    "joules-phase": ["energy by phase", "energy of all clients", "J", (one) => Object.entries(one.joules_by_phase)],
    "joules-ending": ["energy by ending", "energy of all clients", "J", byEnding("joules")],
    "client_s-ending": ["client-seconds by ending", "client-seconds", "s", byEnding("client_s")],
    "flops-ending": ["operations by ending", "operations of all clients", "FLOP", byEnding("flops")],
    "jobs-ending": ["jobs by ending", "jobs", "", byEnding("jobs")],
  };

  /* The parts with an amount in any group, and each group's amounts in their order. */
  function amounts(page, choice) {
    const found = page.costs.map((one) => new Map(SHOWN[choice.what][3](one).filter(([, amount]) => edgefl.known(amount))));
    const parts = series.distinct(found.flatMap((one) => [...one.keys()]))
      .filter((part) => found.some((one) => one.get(part) > 0));
    return { found, parts };
  }

  function bars(page, { found, parts }, choice, xs) {
    const [, , unit] = SHOWN[choice.what];
    const labels = page.costs.map((one) => edgefl.text(page.groups[one.group].name));
    const totals = found.map((one) => parts.reduce((sum, part) => sum + (one.get(part) ?? 0), 0));
    return parts.map((part, place) => ({
      type: "bar", orientation: "h", name: edgefl.text(part), marker: series.filled(place),
      y: page.costs.map((_, at) => at),
      x: found.map((one, at) => (choice.share ? xs.of((one.get(part) ?? 0) / (totals[at] || 1)) : xs.of(one.get(part) ?? 0))),
      text: found.map((one, at) => [`<b>${labels[at]}</b>`, `${edgefl.text(part)}: ${edgefl.number(one.get(part) ?? 0, unit)}`,
        `${edgefl.number((one.get(part) ?? 0) / (totals[at] || 1), "share")} of ${edgefl.number(totals[at], unit)}`].join("<br>")),
      textposition: "none", hovertemplate: "%{text}<extra></extra>",
    }));
  }

  /* Idle power while uploads wait for the server is no part of the energy, so it is told beside it. */
  function waiting(page, choice) {
    if (choice.what !== "joules-phase") return "";
    const known = page.costs.filter((one) => edgefl.known(one.waiting_joules) && one.waiting_joules > 0);
    if (!known.length) return "";
    const told = known.map((one) => `${series.groupName(page, one.group)} ${edgefl.number(one.waiting_joules, "J")}`);
    return `Not in the bars, since it is no part of the energy: idle while uploads wait for the server, ${series.listed(told)}.`;
  }

  edgefl.plot({
    id: "costs", section: "costs", title: "What was spent, and on what", groups: false,
    why: "Means over seeds. Only jobs that were merged are useful: what late, lost and cut jobs cost is wasted.",
    controls: (page) => [
      { name: "what", label: "Show", kind: "select",
        options: Object.keys(SHOWN).filter((what) => amounts(page, { what }).parts.length)
          .map((value) => ({ value, label: SHOWN[value][0] })) },
      { name: "share", label: "As shares", kind: "check" },
    ],
    height: (page) => series.rowsHeight(page.costs.length) + 30,
    draw(page, choice) {
      if (!page.costs.length || !choice.what) return { nothing: "Nothing to draw: no job has ended yet, so nothing was spent." };
      const { found, parts } = amounts(page, choice);
      const [, title, unit] = SHOWN[choice.what];
      const totals = found.map((one) => parts.reduce((sum, part) => sum + (one.get(part) ?? 0), 0));
      const xs = choice.share ? edgefl.axis(`share of ${title}`, "share", [1]) : edgefl.axis(title, unit, totals);
      const rows = page.costs.map((one) => edgefl.text(page.groups[one.group].name));
      const unknown = page.costs.filter((_, at) => !found[at].size).map((one) => series.groupName(page, one.group));
      const note = unknown.length ? `Unknown of ${series.listed(unknown)}: a number that it needs is unknown.` : "";
      return {
        data: bars(page, { found, parts }, choice, xs), note: [note, waiting(page, choice)].filter(Boolean).join(" "),
        layout: { ...series.legend, barmode: "stack", bargap: 0.3, xaxis: xs.layout, yaxis: series.rows(rows) },
      };
    },
    table(page) {
      const rows = [];
      for (const one of page.costs) {
        const name = series.groupName(page, one.group);
        for (const [part, moved] of Object.entries(one.bytes_by_part)) {
          for (const way of WAYS) rows.push([name, "bytes by part", `${part}, ${way}`, "B", moved[way]]);
        }
        for (const [phase, joules] of Object.entries(one.joules_by_phase)) rows.push([name, "energy by phase", phase, "J", joules]);
        rows.push([name, "idle while waiting, no part of the energy", "", "J", one.waiting_joules]);
        for (const [ending, spent] of Object.entries(one.endings)) {
          for (const [key, unit] of Object.entries(ENDING_UNITS)) rows.push([name, `${key} by ending`, ending, unit, spent[key]]);
        }
      }
      return { columns: ["run", "figure", "of", "unit", "mean over seeds"], rows };
    },
  });
})();
