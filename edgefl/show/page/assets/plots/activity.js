/* Clients at work, and how stale merged uploads are, over virtual time. */
(() => {
  const { series } = edgefl;
  // With more lines than these, only means are drawn.
  const WITH_MOST = 8;

  const controls = (records) => (page) => {
    const found = records(page);
    return found.length
      ? [series.runsSwitch(page, found), series.logX(found.map((one) => one.t_s.at(-1)))]
      : [];
  };

  /* A line of a run over the places of some columns, thinned. */
  function line(page, one, { t, y, words, xs, ys, lines, shape, ...more }) {
    const { group } = page.runs[one.run];
    return edgefl.line(page, group, {
      ...series.points(y, lines, {
        x: (place) => xs.of(t[place]),
        y: (place) => ys.of(y[place]),
        text: (place) => series.hover(series.runName(page, one.run), ...words(place)),
      }),
      marker: { size: 9, symbol: series.look(group).symbol },
      showlegend: one.run === page.groups[group].runs[0],
      ...more,
      line: { shape, ...more.line },
    });
  }

  const THIN = { line: { width: 1 }, opacity: 0.55, showlegend: false };

  /* Steps of equal width: those of one run short ones with the most, those of several long ones. */
  function steps(page, one, { wide, ...drawn }) {
    const [t, mean] = wide ? [one.wide_t_s, one.wide_mean] : [one.t_s, one.active_mean];
    const length = t[1] - t[0];
    const end = t.at(-1) + length;
    const words = (place) => {
      const at = Math.min(place, t.length - 1);
      return [
        `${edgefl.number(mean[at])} active clients in the mean`,
        wide ? "" : `${edgefl.number(one.active_max[at])} at most`,
        `from ${edgefl.number(t[at], "s")} to ${edgefl.number(t[at] + length, "s")}`,
      ];
    };
    const of = (values) => ({ ...drawn, t: [...t, end], y: [...values, values.at(-1)], words, shape: "hv" });
    const own = line(page, one, of(mean));
    return wide ? [own] : [line(page, one, { ...of(one.active_max), ...THIN }), own];
  }

  const begun = (page) => page.activity.filter((one) => one.t_s.length);
  const isStale = (one) => one.staleness_max.some((most) => most > 0);
  const stale = (page) => page.activity.filter(isStale);

  edgefl.plot({
    id: "active",
    section: "activity",
    title: "Active clients",
    controls: controls(begun),
    why: "Clients that are receiving, working or transmitting, over virtual time.",
    draw(page, choice) {
      if (!begun(page).length) return { nothing: "Nothing to draw: no client has been asked for anything yet." };
      const found = series.chosenRuns(page, begun(page), choice.run);
      const wide = found.length > 1;
      const xs = edgefl.axis("virtual time", "s", found.flatMap((one) => one.t_s), { log: choice.log_x });
      const ys = edgefl.axis("active clients", "", [1], { rangemode: "tozero" });
      return {
        data: found.flatMap((one) => steps(page, one, { wide, xs, ys, lines: found.length })),
        note: series.sentences(
          wide
            ? "Each step is the mean over a fortieth of the run. Choose one run to see its rounds."
            : "The thick line is the mean over a four-hundredth of the run, the thin one the most at once.",
          series.seedsNote(page, choice.run),
        ),
        layout: { xaxis: xs.layout, yaxis: ys.layout },
      };
    },
    table: (page) => ({
      columns: ["run", "from (s)", "mean of active clients", "most active clients"],
      rows: page.activity.flatMap((one) =>
        one.t_s.map((t, at) => [series.runName(page, one.run), t, one.active_mean[at], one.active_max[at]]),
      ),
    }),
  });

  edgefl.plot({
    id: "staleness",
    section: "activity",
    title: "Staleness of merged uploads",
    controls: controls(stale),
    why: "How many versions the server's model was ahead of the one that a merged upload had started from.",
    draw(page, choice) {
      if (!page.activity.some((one) => one.staleness_t_s.length))
        return { nothing: "Nothing to draw: nothing has been merged yet." };
      if (!stale(page).length)
        return { nothing: "Nothing to draw: every upload was merged into the version it had started from." };
      const found = series.chosenRuns(page, stale(page), choice.run);
      const xs = edgefl.axis(
        "virtual time",
        "s",
        found.flatMap((one) => one.staleness_t_s),
        { log: choice.log_x },
      );
      const ys = edgefl.axis("versions behind", "", [1], { rangemode: "tozero" });
      const most = found.length <= WITH_MOST;
      const data = found.flatMap((one) => {
        const words = (place) => [
          `${edgefl.number(one.staleness_mean[place])} versions behind in the mean,` +
            ` ${edgefl.number(one.staleness_max[place])} at most`,
          `merged at ${edgefl.number(one.staleness_t_s[place], "s")}`,
        ];
        const of = (y) => ({ t: one.staleness_t_s, y, words, xs, ys, lines: 2 * found.length });
        const mean = line(page, one, of(one.staleness_mean));
        return most ? [line(page, one, { ...of(one.staleness_max), ...THIN }), mean] : [mean];
      });
      const without = series.without(page, stale(page));
      return {
        data,
        note: series.sentences(
          most ? "Thick lines are means, thin ones the most." : "Only means are drawn; the CSV has the most, too.",
          series.seedsNote(page, choice.run),
          without && `Not drawn, since no upload was stale: ${without}.`,
        ),
        layout: { xaxis: xs.layout, yaxis: ys.layout },
      };
    },
    table: (page) => ({
      columns: ["run", "merged at (s)", "mean staleness (versions)", "largest staleness (versions)"],
      rows: page.activity.flatMap((one) =>
        one.staleness_t_s.map((t, at) => [
          series.runName(page, one.run),
          t,
          one.staleness_mean[at],
          one.staleness_max[at],
        ]),
      ),
    }),
  });
})();
