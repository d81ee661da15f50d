/* One round, job by job: who received, worked and sent when, and who the merge waited for. */
(() => {
  const { series } = edgefl;
  // A stage ends where the next begins; what a job did not reach is missing.
  const STAGES = [
    ["receive", "dispatched_s", "received_s"],
    ["work", "received_s", "worked_s"],
    ["transmit", "worked_s", "arrived_s"],
  ];
  const WAIT = ["wait for the merge", "arrived_s", "ended_s"];
  const TIMERS = { timer: "a timer", server: "the server's work", "waiting for clients": "clients to come" };
  const WAIT_COLOUR = "rgba(136, 144, 154, 0.3)";
  // How much is seen of a job whose result nobody took.
  const FAINT = 0.4;

  const of = (page, choice) => page.rounds.find((one) => one.run === choice.run) ?? page.rounds[0];

  /* The jobs of a round that are listed, by their places, the last to end at the bottom. */
  function jobsOf(run, at) {
    const end = run.first[at + 1] ?? run.client.length;
    const places = Array.from({ length: end - run.first[at] }, (_, job) => run.first[at] + job);
    const last = (place) => run.arrived_s[place] ?? run.ended_s[place];
    return places.sort((one, other) => last(one) - last(other));
  }

  const whoOf = (run, place) => `${run.client[place]}, ${run.device_names[run.device[place]]}`;

  /* A job's stage as [from, to, whether it was broken off, seconds away]. */
  function stretch(run, place, [name, from, to]) {
    if (!edgefl.known(run[from][place])) return null;
    const broken = !edgefl.known(run[to][place]);
    const end = broken ? run.ended_s[place] : run[to][place];
    return [run[from][place], end, broken, run[`${name}_away_s`]?.[place] ?? 0];
  }

  const isMerged = (run, place) => run.ending[place] === "merged";

  /* Bars of some jobs, of those that were not merged faint ones: [row, place, from, to, words]. */
  const trace = (run, at, xs, name, marker, found) => ({
    type: "bar",
    orientation: "h",
    name,
    marker: { ...marker, opacity: found.map(([, place]) => (isMerged(run, place) ? 1 : FAINT)) },
    y: found.map(([row]) => row),
    base: found.map(([, , from]) => xs.of(from - run.from_s[at])),
    x: found.map(([, , from, to]) => xs.of(to - from)),
    text: found.map(([, , , , words]) => words),
    textposition: "none",
    hovertemplate: "%{text}<extra></extra>",
  });

  /* The stages' bars, and those of the time in which clients were away. */
  function bars(run, at, jobs, xs) {
    const since = (t) => edgefl.number(t - run.from_s[at], "s");
    const words = (stage, place, [from, to, broken, away]) =>
      series.hover(
        `client ${whoOf(run, place)}`,
        `${stage}${broken ? ", broken off" : ""}: ${edgefl.number(to - from, "s")}` +
          (away > 0 ? `, of which ${edgefl.number(away, "s")} away or paused` : ""),
        `from ${since(from)} to ${since(to)} after the first dispatch`,
        isMerged(run, place) ? "merged" : `${run.ending[place]}: wasted`,
      );
    const away = [];
    const stages = STAGES.map((stage, number) => {
      const busy = [];
      jobs.forEach((place, row) => {
        const found = stretch(run, place, stage);
        if (!found || found[1] <= found[0]) return;
        const told = words(stage[0], place, found);
        const until = found[1] - found[3];
        if (until > found[0]) busy.push([row, place, found[0], until, told]);
        if (found[3] > 0) away.push([row, place, until, found[1], told]);
      });
      return trace(run, at, xs, stage[0], series.filled(number), busy);
    });
    const wait = jobs.flatMap((place, row) => {
      const found = stretch(run, place, WAIT);
      return found && found[1] > found[0] ? [[row, place, found[0], found[1], words(WAIT[0], place, found)]] : [];
    });
    return [
      ...stages,
      trace(run, at, xs, "away or paused", series.filled(STAGES.length), away),
      trace(run, at, xs, WAIT[0], { color: WAIT_COLOUR }, wait),
    ].filter(({ x }) => x.length);
  }

  /* The words behind a job that was not merged, and behind the one that was waited for. */
  function markOf(run, at, place) {
    const waited = run.client[place] === run.waited_client[at];
    const words = [
      !isMerged(run, place) && (edgefl.narrow() ? "✕" : `✕ ${run.ending[place]}`),
      waited && (edgefl.narrow() ? "◀" : "◀ waited for"),
    ];
    return words.filter(Boolean).join(" ");
  }

  function marks(run, at, jobs, xs) {
    const marked = jobs.map((place, row) => [row, place]).filter(([, place]) => markOf(run, at, place));
    if (!marked.length) return [];
    const words = {
      type: "scatter",
      mode: "text",
      showlegend: false,
      cliponaxis: false,
      hoverinfo: "skip",
      textposition: "middle right",
      y: marked.map(([row]) => row),
      text: marked.map(([, place]) => `<b>${markOf(run, at, place)}</b>`),
      x: marked.map(([, place]) => xs.of((run.arrived_s[place] ?? run.ended_s[place]) - run.from_s[at])),
    };
    return [words];
  }

  /* Which merge, in words: of a round, or of an exchange before or after the rounds. */
  function nameOf(page, run, at) {
    const [round, rounds] = [run.round[at], page.runs[run.run].rounds];
    const when =
      round < 0 ? "before the rounds" : round >= (rounds ?? Infinity) ? "after the rounds" : `round ${round}`;
    return run.version[at] < 0 ? `${when}, ${run.exchange[at]}, not merged` : `${when}, ${run.exchange[at]}`;
  }

  /* The merge in words. */
  function told(run, at, jobs) {
    const left = run.omitted[at];
    const omitted =
      wasted(run, jobs) + (left ? ` ${edgefl.number(left)} jobs that ended earlier are not listed.` : "");
    if (run.version[at] < 0) return `No merge took these jobs.${omitted}`;
    const took = edgefl.number(run.to_s[at] - run.from_s[at], "s");
    const beyond = isShort(run, at, jobs) ? " Most of the wait is not drawn." : "";
    const whole = `From the first of these jobs to the merge it took ${took}`;
    return `${whole}${waitedFor(run, at, jobs)}.${beyond}${omitted}`;
  }

  /* How many of the jobs were not merged, and why. */
  function wasted(run, jobs) {
    const count = (ending) => jobs.filter((place) => run.ending[place] === ending).length;
    const told = ["late", "lost", "cut"].filter(count).map((ending) => `${count(ending)} ${ending}`);
    return told.length ? ` Faint jobs were not merged: ${series.listed(told)} of ${jobs.length}.` : "";
  }

  function waitedFor(run, at, jobs) {
    const client = run.waited_client[at];
    const [phase, seconds] = [run.waited_phase[at], edgefl.number(run.waited_s[at], "s")];
    if (client < 0) return phase ? `. The merge waited ${seconds} for ${TIMERS[phase]}` : "";
    const place = jobs.find((job) => run.client[job] === client);
    const device = place === undefined ? "" : ` (${run.device_names[run.device[place]]})`;
    return `. The merge waited ${seconds} for client ${client}${device}, most of it for its ${phase}`;
  }

  // Jobs that take a smaller share of the time until the merge are drawn without most of the wait.
  const SHORT = 0.2;

  /* When the last job arrived, or ended without. */
  const arrivedBy = (run, jobs) =>
    jobs.reduce((end, place) => Math.max(end, run.arrived_s[place] ?? run.ended_s[place]), -Infinity);
  const isShort = (run, at, jobs) =>
    jobs.length > 0 && arrivedBy(run, jobs) - run.from_s[at] < SHORT * (run.to_s[at] - run.from_s[at]);

  /* Where the axis ends: with the merge and the last job's end; where the wait is long, with its arrival. */
  function endOf(run, at, jobs) {
    if (isShort(run, at, jobs)) return arrivedBy(run, jobs);
    return jobs.reduce((end, place) => Math.max(end, run.ended_s[place]), run.to_s[at]);
  }

  /* The axis from the first dispatch to the last end, with room for marks, and a line where the merge was. */
  function frame(run, at, jobs) {
    const last = endOf(run, at, jobs);
    const title = edgefl.narrow() ? "virtual time" : "virtual time since the first dispatch";
    const xs = edgefl.axis(title, "s", [last - run.from_s[at]]);
    const merged = xs.of(run.to_s[at] - run.from_s[at]);
    const line = { dash: "dash", width: 1.5, color: edgefl.colour("--ink") };
    const merge = { type: "line", xref: "x", yref: "paper", x0: merged, x1: merged, y0: 0, y1: 1, line };
    const xaxis = { ...xs.layout, range: [0, xs.of(last - run.from_s[at])] };
    // The words behind the bars stand beside the plot.
    const longest = Math.max(0, ...jobs.map((place) => markOf(run, at, place).length));
    const margin = { r: 12 + 7.5 * longest };
    return { xs, layout: { xaxis, margin, shapes: [merge] } };
  }

  edgefl.plot({
    id: "round",
    section: "rounds",
    title: "Timeline of a round",
    groups: false,
    why:
      "Each row is a client's job: receiving, work, transmission and the wait for the merge. Time in which" +
      " the client was away or paused stands at the end of its stage.",
    controls(page, choice) {
      if (!page.rounds.length) return [];
      const run = of(page, choice);
      const values = run.round.map((_, at) => at);
      return [
        series.runSwitch(page, page.rounds),
        {
          name: "at",
          label: "Round",
          kind: "slider",
          values,
          text: (at) => nameOf(page, run, at),
          jumps: [{ label: "Slowest round", value: run.slowest }],
        },
      ];
    },
    height: (page, choice) =>
      page.rounds.length ? series.rowsHeight(jobsOf(of(page, choice), choice.at).length, 24) : 120,
    draw(page, choice) {
      if (!page.rounds.some((one) => one.round.length))
        return { nothing: "Nothing to draw: no round has been merged yet." };
      const run = of(page, choice);
      if (!run.round.length)
        return { nothing: "Nothing to draw: no round of this run has been merged yet.", chosen: true };
      const jobs = jobsOf(run, choice.at);
      const { xs, layout } = frame(run, choice.at, jobs);
      const names = jobs.map((place) =>
        edgefl.narrow() ? String(run.client[place]) : edgefl.text(whoOf(run, place)),
      );
      return {
        data: [...bars(run, choice.at, jobs, xs), ...marks(run, choice.at, jobs, xs)],
        note: told(run, choice.at, jobs),
        layout: {
          ...series.legend,
          ...layout,
          barmode: "overlay",
          bargap: 0.25,
          yaxis: { ...series.rows(names, false), title: "client" },
        },
      };
    },
    table(page, choice) {
      const run = of(page, choice);
      const columns = [
        "run",
        "round",
        "exchange",
        "client",
        "device",
        "dispatched (s)",
        "received (s)",
        "worked (s)",
        "arrived (s)",
        "ended (s)",
        "away while receiving (s)",
        "away while working (s)",
        "away while transmitting (s)",
        "ending",
        "waited for",
      ];
      if (!run) return { columns, rows: [] };
      const name = series.runName(page, run.run);
      const rows = run.round.flatMap((round, at) =>
        jobsOf(run, at).map((place) => [
          name,
          round,
          run.exchange[at],
          run.client[place],
          run.device_names[run.device[place]],
          run.dispatched_s[place],
          run.received_s[place],
          run.worked_s[place],
          run.arrived_s[place],
          run.ended_s[place],
          run.receive_away_s[place],
          run.work_away_s[place],
          run.transmit_away_s[place],
          run.ending[place],
          run.client[place] === run.waited_client[at] ? run.waited_phase[at] : "",
        ]),
      );
      return { columns, rows };
    },
  });
})();
