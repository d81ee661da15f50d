/* How long jobs, their stages and rounds took, as cumulative distributions. */
(() => {
  const { series } = edgefl;
  const STAGES = { round: "rounds", job: "jobs", receive: "receiving", work: "work", transmit: "transmission" };
  const isOne = (choice) => typeof choice.run === "number";

  /* Lines of whole runs, or of one run's devices. */
  function of(page, choice) {
    const own = page.durations.filter((one) => one.what === choice.what && one.seconds.length);
    return series.chosenRuns(page, own, choice.run).filter((one) => isOne(choice) || one.device === "");
  }

  function hovers(page, one) {
    const who = one.device
      ? `${series.runName(page, one.run)}, ${one.device}`
      : series.runName(page, one.run);
    return (place) =>
      series.hover(
        who,
        `${edgefl.number(one.share[place], "share")} of ${edgefl.number(one.count)} took` +
          ` at most ${edgefl.number(one.seconds[place], "s")}`,
      );
  }

  function line(page, one, choice, devices, { xs, ys, lines }) {
    const { group } = page.runs[one.run];
    // A distribution rises from nothing at its least duration.
    const [seconds, share] = [
      [one.seconds[0], ...one.seconds],
      [0, ...one.share],
    ];
    const words = hovers(page, one);
    const of = {
      x: (place) => xs.of(seconds[place]),
      y: (place) => ys.of(share[place]),
      text: (place) => words(Math.max(place - 1, 0)),
    };
    const drawn = { ...series.points(seconds, lines, of), line: { shape: "hv" } };
    if (!isOne(choice))
      return edgefl.line(page, group, { ...drawn, showlegend: one.run === page.groups[group].runs[0] });
    if (!one.device)
      return {
        type: "scatter",
        mode: "lines",
        name: "all devices",
        ...drawn,
        line: { color: "#888888", width: 4, shape: "hv" },
      };
    const { colour, dash } = series.look(devices.indexOf(one.device));
    return {
      type: "scatter",
      mode: "lines",
      name: edgefl.text(one.device),
      ...drawn,
      line: { color: colour, dash, width: 2, shape: "hv" },
    };
  }

  edgefl.plot({
    id: "durations",
    section: "durations",
    title: "Durations of rounds and jobs (CDF)",
    why:
      "The share of rounds, jobs or stages that took at most a given virtual time. Choose a run to compare" +
      " its classes of devices.",
    controls(page) {
      const runs = series.runsSwitch(page, page.durations);
      const whats = Object.keys(STAGES).filter((what) =>
        page.durations.some((one) => one.what === what && one.seconds.length),
      );
      return [
        {
          name: "what",
          label: "Of",
          kind: "radio",
          options: whats.map((value) => ({ value, label: STAGES[value] })),
        },
        {
          ...runs,
          label: "Compare",
          options: runs.options.map((one) =>
            isOne({ run: one.value }) ? { ...one, label: `devices of ${one.label}` } : one,
          ),
        },
        { name: "log_x", label: "Log x", kind: "check", initial: true },
      ];
    },
    groups: (page, choice) => !isOne(choice),
    draw(page, choice) {
      if (!page.durations.some((one) => one.seconds.length))
        return { nothing: "Nothing to draw: no job has ended yet." };
      const found = of(page, choice);
      if (!found.length)
        return { nothing: `Nothing to draw: this run has no ${STAGES[choice.what]} that ended.`, chosen: true };
      const xs = edgefl.axis(
        "virtual time",
        "s",
        found.flatMap((one) => [...one.seconds]),
        { log: choice.log_x },
      );
      const ys = edgefl.axis(`share of ${STAGES[choice.what]}`, "share", [1], { rangemode: "tozero" });
      const devices = series.distinct(found.map((one) => one.device).filter(Boolean)).sort();
      const data = found.map((one) => line(page, one, choice, devices, { xs, ys, lines: found.length }));
      const alone = isOne(choice) && !devices.length;
      const left = found.filter((one) => one.device === "").reduce((sum, one) => sum + one.left_out, 0);
      const note = series.sentences(
        alone && choice.what === "round" && "A round is of no single class of devices.",
        series.seedsNote(page, choice.run),
        left && `${edgefl.number(left)} jobs that were not merged do not count.`,
      );
      return {
        data,
        note,
        layout: { ...(isOne(choice) ? series.legend : {}), xaxis: xs.layout, yaxis: ys.layout },
      };
    },
    table(page) {
      const rows = page.durations.flatMap((one) =>
        one.seconds.map((value, place) => [
          series.runName(page, one.run),
          one.device || "all",
          one.what,
          one.count,
          value,
          one.share[place],
        ]),
      );
      return {
        columns: ["run", "device", "of", "count", "virtual time (s)", "share that took at most so long"],
        rows,
      };
    },
  });
})();
