/* Clients at work, and how stale merged uploads are, over virtual time. */
(() => {
  const { series } = edgefl;
  // With more lines than these, only means are drawn.
  const WITH_MOST = 8;

  const controls = (page) => [
    series.runsSwitch(page, page.activity),
    { name: "log_x", label: "Log x", kind: "check" },
  ];

  /* Two lines of a run: the mean, and the most in a thin line. */
  function lines(page, one, { t, mean, most, what, xs, ys, count }) {
    const { group } = page.runs[one.run];
    const words = (place) =>
      series.hover(
        series.runName(page, one.run),
        `${what}: ${edgefl.number(one[mean][place])} in the mean,` +
          ` ${edgefl.number(one[most][place])} at most`,
        `virtual time ${edgefl.number(one[t][place], "s")}`,
      );
    const of = (key) =>
      series.points(one[key], 2 * count, {
        x: (place) => xs.of(one[t][place]),
        y: (place) => ys.of(one[key][place]),
        text: words,
      });
    const first = one.run === page.groups[group].runs[0];
    const marker = { size: 9, symbol: series.look(group).symbol };
    const drawn = [edgefl.line(page, group, { ...of(mean), marker, showlegend: first })];
    if (count <= WITH_MOST) {
      drawn.push(
        edgefl.line(page, group, { ...of(most), line: { width: 1 }, opacity: 0.55, showlegend: false }),
      );
    }
    return drawn;
  }

  function drawn(page, all, choice, { t, mean, most, what }) {
    const found = series.chosenRuns(page, all, choice.run);
    if (!found.length) return { nothing: `Nothing to draw: of this run no ${what} are known.`, chosen: true };
    const xs = edgefl.axis(
      "virtual time",
      "s",
      found.flatMap((one) => one[t]),
      { log: choice.log_x },
    );
    const ys = edgefl.axis(what, "", [1], { rangemode: "tozero" });
    const data = found.flatMap((one) =>
      lines(page, one, { t, mean, most, what, xs, ys, count: found.length }),
    );
    const note =
      found.length <= WITH_MOST
        ? "Thick lines are means, thin ones the most at once."
        : "Only means are drawn; the CSV has the most, too.";
    return { data, note, layout: { xaxis: xs.layout, yaxis: ys.layout } };
  }

  const table = (page, [t, mean, most], columns) => ({
    columns: ["run", ...columns],
    rows: page.activity.flatMap((one) =>
      one[t].map((time, place) => [series.runName(page, one.run), time, one[mean][place], one[most][place]]),
    ),
  });

  edgefl.plot({
    id: "active",
    section: "activity",
    title: "Active clients",
    controls,
    why: "Clients that receive, work or send at once, over virtual time.",
    draw(page, choice) {
      const found = page.activity.filter((one) => one.t_s.length);
      if (!found.length) return { nothing: "Nothing to draw: no client has been asked for anything yet." };
      return drawn(page, found, choice, {
        t: "t_s",
        mean: "active_mean",
        most: "active_max",
        what: "active clients",
      });
    },
    table: (page) =>
      table(
        page,
        ["t_s", "active_mean", "active_max"],
        ["from (s)", "mean of active clients", "most active clients"],
      ),
  });

  edgefl.plot({
    id: "staleness",
    section: "activity",
    title: "Staleness of merged uploads",
    controls,
    why: "How many versions the server's model was ahead of the one that a merged upload had started from.",
    draw(page, choice) {
      const found = page.activity.filter((one) => one.staleness_t_s.length);
      if (!found.length) return { nothing: "Nothing to draw: nothing has been merged yet." };
      if (!found.some((one) => one.staleness_max.some((most) => most > 0))) {
        return {
          nothing:
            "Nothing to draw: no upload was stale. Every one was merged into the version that it had" +
            " started from.",
        };
      }
      return drawn(page, found, choice, {
        t: "staleness_t_s",
        mean: "staleness_mean",
        most: "staleness_max",
        what: "versions behind",
      });
    },
    table: (page) =>
      table(
        page,
        ["staleness_t_s", "staleness_mean", "staleness_max"],
        ["merged at (s)", "mean staleness (versions)", "largest staleness (versions)"],
      ),
  });
})();
