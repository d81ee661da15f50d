/* What plots share: names of runs, colours of parts, fewer points where there are many. */
(() => {
  // Okabe and Ito's colours, and a pattern with each, for parts, phases and devices.
  const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#a89a1f", "#888888"];
  const PATTERNS = ["", "/", "x", ".", "\\", "-", "+", "|"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "star", "pentagon", "cross"];

  const at = (list, place) => list[place % list.length];

  /** A group's or a run's name in one line. */
  const groupName = (page, group) => page.groups[group].name.replace(/\s*\n\s*/g, ", ");
  const runName = (page, run) => page.runs[run].name;

  /** A switch between the runs of some records. */
  function runSwitch(page, records) {
    const runs = [...new Set(records.map((record) => record.run))].sort((one, other) => one - other);
    const options = runs.map((value) => ({ value, label: edgefl.short(runName(page, value)) }));
    return { name: "run", label: "Run", kind: "select", options };
  }

  /** Sentences one after the other, without those that are not there. */
  const sentences = (...all) => all.filter(Boolean).join(" ");

  /** Places of a line's points, at most `most`: the lowest and the highest of each stretch, and both ends. */
  function kept(values, most) {
    const count = values.length;
    if (count <= most) return values.map((_, place) => place);
    const stretches = Math.max(Math.floor((most - 2) / 2), 1);
    const places = [0];
    for (let stretch = 0; stretch < stretches; stretch += 1) {
      const from = 1 + Math.floor((stretch * (count - 2)) / stretches);
      const to = 1 + Math.floor(((stretch + 1) * (count - 2)) / stretches);
      let low = from;
      let high = from;
      for (let place = from; place < to; place += 1) {
        if (values[place] < values[low]) low = place;
        if (values[place] > values[high]) high = place;
      }
      places.push(Math.min(low, high));
      if (low !== high) places.push(Math.max(low, high));
    }
    places.push(count - 1);
    return places;
  }

  /** A bold name and lines below it, for a hover. */
  const hover = (name, ...lines) =>
    [`<b>${edgefl.text(name)}</b>`, ...lines.filter(Boolean).map(edgefl.escaped)].join("<br>");

  /** The colour, the dash and the symbol of a part, by its place among all. */
  const look = (place) => ({ colour: at(COLOURS, place), dash: at(DASHES, place), symbol: at(SYMBOLS, place) });

  /** Marks of a part that is told apart by its colour and by its pattern. */
  function filled(place, { color = at(COLOURS, place), shape = at(PATTERNS, place) } = {}) {
    return { color, pattern: { shape, fgcolor: "#ffffff", fillmode: "overlay", size: 7, solidity: 0.25 } };
  }

  /** A legend above the plot, for plots whose legend is not that of the runs. */
  const legend = {
    showlegend: true,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", traceorder: "normal" },
  };

  // A long text in lines, so that names leave room for what is drawn; two characters are edgefl.text's marks.
  const WIDTH = 22;
  const folded = (text) => {
    const lines = [""];
    for (const word of text.split(/(?<=[ ,_/=-])/)) {
      if (lines.at(-1) && lines.at(-1).length + word.trimEnd().length > WIDTH) lines.push("");
      lines[lines.length - 1] += word;
    }
    return lines
      .slice(0, 3)
      .map((line) => line.trimEnd())
      .join("<br>");
  };

  /** The height of a plot with a row for each of some things. */
  const rowsHeight = (rows, each = 30) => Math.min(Math.max(rows * each, 90), 1800) + 110;

  const FOLDED = 40;

  /** That of a row for each group, where long names take more than one line. */
  function namesHeight(page) {
    const lines = page.groups.map(({ name }) => folded(edgefl.short(name)).split("<br>").length);
    return rowsHeight(page.groups.length, page.groups.length > FOLDED ? 20 : Math.max(30, 16 * Math.max(...lines) + 6));
  }

  /** An axis with a row for each of some texts, the first on top; rows of one name stay apart. */
  const rows = (texts, fold = texts.length <= FOLDED) => ({
    tickmode: "array",
    tickvals: texts.map((_, place) => place),
    ticktext: fold ? texts.map((text) => folded(text)) : texts,
    range: [texts.length - 0.5, -0.5],
    showgrid: false,
    zeroline: false,
  });

  /** Lines between rows, of which each holds several marks. */
  const between = { tickmode: "linear", tick0: 0.5, dtick: 1, showgrid: true };

  /** "a, b and c", of many the first ones; "a, 1; b, 2 and c, 3" where there are commas in them. */
  function listed(words) {
    const shown = words.length > 5 ? [...words.slice(0, 4), `${words.length - 4} others`] : words;
    const apart = words.some((one) => one.includes(",")) ? "; " : ", ";
    return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(apart)} and ${shown.at(-1)}`;
  }

  /** Places of at most `most` of some things, evenly spaced, the first and the last among them. */
  function spaced(count, most) {
    const shown = Math.min(count, most);
    return Array.from({ length: shown }, (_, at) =>
      shown > 1 ? Math.round((at * (count - 1)) / (shown - 1)) : 0,
    );
  }

  /** Places of at most `most` of some things, each as far from the next: the first, and every other or third. */
  const everyNth = (count, most) =>
    Array.from({ length: count }, (_, at) => at).filter((at) => at % Math.ceil(count / most) === 0);

  const distinct = (values) => [...new Set(values)];

  edgefl.series = {
    groupName, runName, runSwitch, sentences, kept, hover, folded, look, filled, legend, rowsHeight, namesHeight,
    rows, between, listed, spaced, everyNth, distinct,
  };
})();
