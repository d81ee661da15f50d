/* How long jobs, their stages and rounds took, as cumulative distributions. */
(() => {
  const { series } = edgefl;
  const STAGES = { round: "rounds", job: "jobs", receive: "receiving", work: "work", transmit: "sending" };
  const ALL = "all";

  /* Lines of whole runs, or of one run's devices. */
  const of = (page, choice) =>
    page.durations.filter(
      (one) =>
        one.what === choice.what &&
        one.seconds.length &&
        (choice.run === ALL ? one.device === "" : one.run === choice.run),
    );

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
    const of = {
      x: (place) => xs.of(one.seconds[place]),
      y: (place) => ys.of(one.share[place]),
      text: hovers(page, one),
    };
    const drawn = { ...series.points(one.seconds, lines, of), line: { shape: "hv" } };
    if (choice.run === ALL)
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
    title: "How long it took",
    why:
      "The share of rounds, jobs or their stages that took at most so long, in virtual time. Choose a run" +
      " to see its classes of devices.",
    controls(page) {
      const runs = series.runSwitch(page, page.durations);
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
          options: [
            { value: ALL, label: "all runs" },
            ...runs.options.map((one) => ({ ...one, label: `devices of ${one.label}` })),
          ],
        },
        { name: "log_x", label: "Log x", kind: "check", initial: true },
      ];
    },
    groups: (page, choice) => choice.run === ALL,
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
      const alone = choice.run !== ALL && !devices.length;
      const left = found.filter((one) => one.device === "").reduce((sum, one) => sum + one.left_out, 0);
      const note = [
        alone ? "A round is of no single class of devices." : "",
        left ? `${edgefl.number(left)} jobs that were not merged do not count.` : "",
      ]
        .filter(Boolean)
        .join(" ");
      return {
        data,
        note,
        layout: { ...(choice.run === ALL ? {} : series.legend), xaxis: xs.layout, yaxis: ys.layout },
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
