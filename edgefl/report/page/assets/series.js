/* What plots share: names of runs, colours of parts, fewer points where there are many. */
(() => {
  // Points that the lines of one plot have together, so that a switch answers at once; the CSV has them all.
  const POINTS = 20_000;
  // Okabe and Ito's colours, and a pattern with each, for parts, phases and devices.
  const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#a89a1f", "#888888"];
  const PATTERNS = ["", "/", "x", ".", "\\", "-", "+", "|"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "star", "pentagon", "cross"];

  const at = (list, place) => list[place % list.length];

  /** A group's name in one line. */
  const groupName = (page, group) => page.groups[group].name.replace(/\s*\n\s*/g, ", ");

  /** A run's name in one line; runs of one group differ by their seeds. */
  function runName(page, run) {
    const { group, seed } = page.runs[run];
    const name = groupName(page, group);
    return page.groups[group].runs.length > 1 ? `${name}, seed ${seed}` : name;
  }

  /** A switch between the runs of some records. */
  function runSwitch(page, records) {
    const runs = [...new Set(records.map((record) => record.run))].sort((one, other) => one - other);
    const options = runs.map((value) => ({ value, label: edgefl.short(runName(page, value)) }));
    return { name: "run", label: "Run", kind: "select", options };
  }

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

  /** Points that each of some lines may have. */
  const budget = (lines) => Math.max(Math.floor(POINTS / Math.max(lines, 1)), 40);

  /** A line, thinned: points are {x, y, text}, each a function of a place. */
  function points(values, lines, { x, y, text }) {
    const places = kept(values, budget(lines));
    return { x: places.map(x), y: places.map(y), text: places.map(text), hovertemplate: "%{text}<extra></extra>" };
  }

  /** A bold name and lines below it, for a hover. */
  const hover = (name, ...lines) => [`<b>${edgefl.text(name)}</b>`, ...lines.filter(Boolean)].join("<br>");

  /** The colour, the pattern, the dash and the symbol of a part, by its place among all. */
  const look = (place) => ({
    colour: at(COLOURS, place), pattern: at(PATTERNS, place), dash: at(DASHES, place), symbol: at(SYMBOLS, place),
  });

  /** Marks that tell parts apart without colours, too. */
  function filled(place) {
    const { colour, pattern } = look(place);
    return { color: colour, pattern: { shape: pattern, fgcolor: "#ffffff", fillmode: "overlay", size: 7, solidity: 0.25 } };
  }

  /** A legend above the plot, for plots whose legend is not that of the runs. */
  const legend = { showlegend: true, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" } };

  // A long text in lines, so that names leave room for what is drawn.
  const WIDTH = 20;
  const folded = (text) => {
    const lines = [""];
    for (const word of text.split(/(?<=[ ,_/=-])/)) {
      if (lines.at(-1) && lines.at(-1).length + word.trimEnd().length > WIDTH) lines.push("");
      lines[lines.length - 1] += word;
    }
    return lines.slice(0, 3).map((line) => line.trimEnd()).join("<br>");
  };

  /** The height of a plot with a row for each of some things. */
  const rowsHeight = (rows, each = 30) => Math.min(Math.max(rows * each, 90), 1800) + 110;

  /** An axis with a row for each of some texts, the first on top; rows of one name stay apart. */
  const rows = (texts) => ({
    tickmode: "array", tickvals: texts.map((_, place) => place), ticktext: texts.map(folded),
    range: [texts.length - 0.5, -0.5], showgrid: false, zeroline: false,
  });

  /** "a, b and c"; of many the first ones. */
  function listed(words) {
    const shown = words.length > 5 ? [...words.slice(0, 4), `${words.length - 4} others`] : words;
    return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
  }

  const distinct = (values) => [...new Set(values)];

  edgefl.series = {
    groupName, runName, runSwitch, kept, budget, points, hover, look, filled, legend, rowsHeight, rows, listed, distinct,
  };
})();
