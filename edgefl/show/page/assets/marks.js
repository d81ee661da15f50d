/* Draws the plots that Python declares, see frames.py: a mark for each kind of picture, over a frame's blocks. */
(() => {
  const { series, known, text } = edgefl;
  const ALL = "all", FIRST = "first";
  // Points that the lines of one plot have together, so that a switch answers at once; the CSV has them all.
  const POINTS = 8_000;
  // With more points or more lines than these, lines have no markers.
  const MARKED = 30, FEW = 12;
  const EQUAL = 20;
  // Where the longest line ends so much later than the shortest, the axis is a log axis at first.
  const APART = 30;
  // Where an axis of a unit may end. Bands may reach beyond 0% and 100%, shares do not.
  const BOUNDED = {
    share: { autorangeoptions: { clipmin: -1, clipmax: 101 } }, index: { range: [0, 1.03] }, "": { rangemode: "tozero" },
  };
  const WHOLE = { name: "whole", color: "#888888", width: 4 };

  const isAxial = ({ mark }) => mark === "lines" || mark === "points";
  const isOne = (choice) => typeof choice.run === "number";
  const groupOf = (page, block) => block.group ?? page.runs[block.run]?.group;
  const isFirst = (page, block) => block.run === undefined || page.groups[groupOf(page, block)].runs[0] === block.run;
  const nameOf = (page, block) =>
    block.title ?? (block.run === undefined ? series.groupName(page, block.group) : series.runName(page, block.run));
  const at = (block, name, place) => (Array.isArray(block[name]) ? block[name][place] : block[name]);
  const lengthOf = (block) => Math.max(...Object.values(block).map((one) => (Array.isArray(one) ? one.length : 1)), 0);
  const placesOf = (block) => Array.from({ length: lengthOf(block) }, (_, place) => place);
  const list = (block, name) => (Array.isArray(block[name]) ? block[name] : [block[name]]);
  const unitOf = (column, block) => (column.unit.startsWith("@") ? block[column.unit.slice(1)] : column.unit);
  const titleOf = (column, block) => (column.title.startsWith("@") ? block[column.title.slice(1)] : column.title);
  const has = (blocks, name) => blocks.some((block) => list(block, name).some(known));

  /* The blocks that the switches leave, those of columns first. */
  function within(plot, choice) {
    return plot.frame.blocks.filter((block) => plot.by.every(({ column }) => block[column] === choice[column]));
  }

  function chosen(plot, page, choice) {
    const found = within(plot, choice);
    if (!plot.runs) return found;
    if (isOne(choice)) return found.filter((block) => block.run === choice.run);
    return found.filter((block) => !block[plot.detail] && (choice.run === ALL || isFirst(page, block)));
  }

  function switchesOf(plot, page, choice) {
    const { blocks, columns } = plot.frame;
    if (!blocks.length) return [];
    const titled = (names) => names.map((value) => ({ value, label: titleOf(columns[value], blocks[0]) }));
    const found = [];
    // A switch offers what those before it leave.
    let left = blocks;
    const add = (one, keep) => {
      found.push(one);
      const values = one.options.map(({ value }) => value);
      const value = values.includes(choice[one.name]) ? choice[one.name] : values[0];
      left = left.filter((block) => keep(block, value));
    };
    const axes = isAxial(plot) ? [["y", "Show"], ["x", plot.y.length ? "Against" : "Show"]] : [];
    for (const [name, label] of axes) {
      const options = titled(plot[name].filter((column) => has(blocks, column)));
      const keep = (block, value) => !value || has([block], value);
      if (plot[name].length) add({ name, label, kind: "radio", options }, keep);
    }
    if (plot.runs === "one") add(series.runSwitch(page, blocks), (block, run) => block.run === run);
    for (const { column, label, kind } of plot.by) {
      if (kind === "slider") {
        const slowest = left.find((block) => block.slowest)?.[column];
        const jumps = slowest === undefined ? [] : [{ label: "Slowest round", value: slowest }];
        const options = left.map((block) => ({ value: block[column], label: block.label }));
        found.push({ name: column, label, kind, options, jumps });
      } else {
        const options = series.distinct(left.map((block) => block[column]))
          .map((value) => ({ value, label: edgefl.short(String(value)) }));
        add({ name: column, label, kind, options }, (block, value) => block[column] === value);
      }
    }
    if (plot.runs === "all") found.push(runsSwitch(plot, page));
    const ends = blocks.map((block) => list(block, plot.x[0]).at(-1)).filter((end) => known(end) && end > 0);
    const apart = ends.length > 0 && Math.max(...ends) > APART * Math.min(...ends);
    for (const one of plot.log === "auto" ? (apart ? "X" : "x") : plot.log) {
      const axis = one.toLowerCase();
      found.push({ name: `log_${axis}`, label: `Log ${axis}`, kind: "check", initial: one !== axis });
    }
    if (plot.share) found.push({ name: "share", label: "As shares", kind: "check" });
    return found;
  }

  function runsSwitch(plot, page) {
    const one = series.runSwitch(page, plot.frame.blocks);
    const all = { value: ALL, label: "all runs" };
    const seeds = page.groups.some((group) => group.runs.length > 1);
    const many = seeds ? [{ value: FIRST, label: "all, the first seed of each" }, all] : [all];
    const detailed = plot.detail && plot.frame.blocks.some((block) => block[plot.detail]);
    return { ...one, label: "Runs", options: one.options.length > 1 || detailed ? [...many, ...one.options] : [all] };
  }

  /* Hovers as (block, place, more) -> words: whose it is, and the columns, an interval behind its mean. Of axes to
     choose from, those that are chosen; rows of names have room for all. */
  function wordsOf(plot, page, { x, y }) {
    const aside = plot.row ? [] : plot.mark === "lines" ? plot.x : [...plot.x, ...plot.y];
    const told = Object.entries(plot.frame.columns).filter(([name, column]) =>
      column.told && (name === x || name === y || name === "round" || !aside.includes(name)));
    return (block, place, more = []) => series.hover(nameOf(page, block), ...told.map(([name, column]) => {
      const value = at(block, name, place);
      if (value === null || value === undefined || value === "") return "";
      if (typeof value === "string") return column.title ? `${column.title}: ${value}` : value;
      const number = (one) => edgefl.number(one, unitOf(column, block));
      const [low, high] = [`${name}_low`, `${name}_high`].map((end) => at(block, end, place));
      const bounds = known(low) ? ` (${number(low)} to ${known(high) ? number(high) : "?"})` : "";
      return `${titleOf(column, block)}: ${number(value)}${bounds}`;
    }), ...more);
  }

  const HOVER = { hovertemplate: "%{text}<extra></extra>" };

  /* An axis of a column. */
  function axisOf(plot, name, blocks, log, more = {}) {
    const column = plot.frame.columns[name];
    const values = blocks.flatMap((block) => list(block, name));
    return edgefl.axis(titleOf(column, blocks[0]), unitOf(column, blocks[0]), values, { log, ...more });
  }

  function lines(plot, page, choice, blocks) {
    const { x, y } = choice;
    const { columns } = plot.frame;
    const [low, high] = [`${y}_low`, `${y}_high`];
    const banded = blocks.filter((block) => Array.isArray(block[low]));
    const budget = Math.max(Math.floor(POINTS / (blocks.length + banded.length)), 40);
    const places = blocks.map((block) => series.kept(block[y], budget)
      .filter((place) => known(block[x][place]) && known(block[y][place])));
    const rounds = x === "round" && !choice.log_x ? edgefl.rounds(blocks.flatMap((block) => block[x])) : {};
    const xs = axisOf(plot, x, blocks, choice.log_x, rounds);
    const bounded = BOUNDED[unitOf(columns[y], blocks[0])] ?? {};
    const ys = axisOf(plot, y, blocks, choice.log_y, choice.log_y ? {} : bounded);
    const marked = !plot.step && blocks.length <= FEW && places.every((kept) => kept.length <= MARKED);
    const details = series.distinct(blocks.map((block) => block[plot.detail]).filter(Boolean)).sort();
    const bands = blocks.flatMap((block, number) => {
      if (!banded.includes(block)) return [];
      const back = [...places[number]].reverse();
      // On a log axis a band cannot reach zero: there it ends at the mean.
      const down = back.map((place) => ys.of(block[low][place]) ?? ys.of(block[y][place]));
      const group = groupOf(page, block);
      return [{ type: "scatter", mode: "lines", group, showlegend: false, hoverinfo: "skip", fill: "toself",
                fillcolor: edgefl.faint(page.groups[group].colour), line: { width: 0 },
                x: [...places[number], ...back].map((place) => xs.of(block[x][place])),
                y: [...places[number].map((place) => ys.of(block[high][place])), ...down] }];
    });
    const shape = plot.step ? "hv" : "linear";
    const words = wordsOf(plot, page, choice);
    const means = blocks.map((block, number) => {
      const kept = places[number];
      const drawn = {
        ...HOVER, x: kept.map((place) => xs.of(block[x][place])), y: kept.map((place) => ys.of(block[y][place])),
        text: kept.map((place) => words(block, place)),
      };
      if (isOne(choice) && plot.detail) {
        const { colour, dash } = series.look(details.indexOf(block[plot.detail]));
        const line = block[plot.detail] ? { color: colour, dash, width: 2, shape } : { ...WHOLE, shape };
        return { type: "scatter", mode: "lines", name: text(block[plot.detail] || plot.whole), line, ...drawn };
      }
      const group = groupOf(page, block);
      const mode = kept.length === 1 ? "markers" : marked ? "lines+markers" : "lines";
      const marker = { size: kept.length === 1 ? 10 : 5, symbol: series.look(group).symbol };
      return edgefl.line(page, group, { ...drawn, mode, marker, showlegend: isFirst(page, block), line: { shape } });
    });
    const layout = { ...(isOne(choice) && plot.detail ? series.legend : {}), xaxis: xs.layout, yaxis: ys.layout };
    return { data: [...bands, ...means], layout, note: equal(page, blocks, [x, y]) };
  }

  /* Which lines lie on one another; of many nobody could read it. */
  function equal(page, blocks, axes) {
    if (blocks.length > EQUAL) return "";
    const same = Map.groupBy(blocks, (block) => JSON.stringify(axes.map((axis) => block[axis])));
    const told = [...same.values()].map((each) => series.distinct(each.map((block) => nameOf(page, block))))
      .filter((names) => names.length > 1).map(series.listed);
    return told.length ? `On the same line: ${told.join("; ")}.` : "";
  }

  /* Points of blocks as [block, place], those with a value of a column. */
  const pointsOf = (blocks, name) => blocks.flatMap((block) =>
    placesOf(block).filter((place) => known(at(block, name, place))).map((place) => [block, place]));

  function points(plot, page, choice, blocks) {
    const { x, y } = choice;
    const found = pointsOf(blocks, x).filter(([block, place]) => !y || known(at(block, y, place)));
    const zero = plot.log.includes("X") || y ? {} : { rangemode: "tozero" };
    const xs = axisOf(plot, x, blocks, choice.log_x, choice.log_x ? {} : zero);
    const rows = y ? [] : series.distinct(found.map(([block, place]) => at(block, plot.row, place)));
    const ys = y ? axisOf(plot, y, blocks, choice.log_y) : { layout: series.rows(rows.map(text)) };
    const keyOf = ([block, place]) => (plot.series ? at(block, plot.series, place) : groupOf(page, block));
    const keys = series.distinct(found.map(keyOf));
    // Groups stand side by side in a row.
    const side = plot.series || keys.length === 1 ? 0 : 0.7 / (keys.length - 1);
    const spread = (key) => side * (keys.indexOf(key) - (keys.length - 1) / 2);
    const rowOf = ([block, place]) => rows.indexOf(at(block, plot.row, place));
    const front = plot.joined?.[`${y} ${x}`] ?? [];
    const isBest = (key) => y && front.includes(key);
    const [low, high] = [`${x}_low`, `${x}_high`];
    const words = wordsOf(plot, page, choice);
    const traces = keys.map((key, number) => {
      const own = found.filter((one) => keyOf(one) === key);
      const look = plot.series ? series.look(number) : { ...series.look(key), colour: page.groups[key].colour };
      const size = isBest(key) ? 14 : keys.length > 8 ? 7 : 11;
      const line = { width: isBest(key) ? 2 : 0, color: edgefl.colour("--ink") };
      const marker = { color: look.colour, symbol: look.symbol, size, line, ...styleOf(plot.looks[key]) };
      const drawn = {
        ...HOVER, marker, mode: "markers", type: "scatter",
        x: own.map(([block, place]) => xs.of(at(block, x, place))),
        y: own.map(([block, place]) => (y ? ys.of(at(block, y, place)) : rowOf([block, place]) + spread(key))),
        text: own.map(([block, place]) => words(block, place, isBest(key) ? ["on the front: no run beats it"] : [])),
      };
      if (own.some(([block, place]) => known(at(block, low, place)))) {
        const beyond = (name, sign) => own.map(([block, place], number) =>
          sign * ((xs.of(at(block, name, place)) ?? drawn.x[number]) - drawn.x[number]));
        const [array, arrayminus] = [beyond(high, 1), beyond(low, -1)];
        drawn.error_x = { type: "data", symmetric: false, thickness: 1.5, width: 4, array, arrayminus };
      }
      return plot.series ? { name: text(key), ...drawn } : edgefl.line(page, key, drawn);
    });
    const layout = { xaxis: xs.layout, yaxis: ys.layout };
    const lined = { ...series.legend, ...layout, yaxis: { ...ys.layout, showgrid: true } };
    if (plot.series) return { data: traces, layout: lined };
    if (!y) return { data: traces, layout: { ...layout, yaxis: { ...ys.layout, minor: series.between } } };
    return joined({ plot, page, front, traces, layout });
  }

  /* A look's colour may be one of the page's. */
  const styleOf = (look) => look && { ...look, size: 18, line: { width: 3 },
                                      color: look.color.startsWith("--") ? edgefl.colour(look.color) : look.color };

  // More names than these would cover each other, and so would those nearer than these shares of the plot.
  const NAMED = 8, ABOVE = 0.12;

  /* A line through some groups' points, and names beside the points, those of the front first. */
  function joined({ plot, page, front, traces, layout }) {
    const of = new Map(traces.map((trace) => [trace.group, [trace.x[0], trace.y[0]]]));
    const ends = [0, 1].map((axis) => [...of.values()].map((place) => place[axis]));
    const [width, height] = ends.map((values) => Math.max(...values) - Math.min(...values) || 1);
    const aside = edgefl.narrow() ? 0.5 : 0.18;
    const near = (one, other) => Math.abs(of.get(one)[0] - of.get(other)[0]) < aside * width &&
      Math.abs(of.get(one)[1] - of.get(other)[1]) < ABOVE * height;
    const sorted = [...of.keys()].sort((one, other) => of.get(one)[0] - of.get(other)[0]);
    const half = (Math.max(...ends[0]) + Math.min(...ends[0])) / 2;
    const named = [];
    for (const group of of.size <= NAMED ? series.distinct([...front, ...of.keys()]) : [])
      if (!named.some((other) => near(group, other))) named.push(group);
    const points = traces.map((trace) => ({
      ...trace, hovertext: trace.text, hovertemplate: "%{hovertext}<extra></extra>", cliponaxis: false,
      mode: named.includes(trace.group) ? "markers+text" : "markers",
      text: [text(series.groupName(page, trace.group))],
      textposition: `${sorted.indexOf(trace.group) % 2 ? "bottom" : "top"} ${trace.x[0] > half ? "left" : "right"}`,
    }));
    const through = front.map((group) => of.get(group));
    const line = { type: "scatter", mode: "lines", name: "Pareto front", hoverinfo: "skip",
                   line: { shape: "hv", width: 1.5, dash: "dot", color: edgefl.colour("--soft") },
                   x: through.map(([x]) => x), y: through.map(([, y]) => y) };
    const names = series.listed(front.map((group) => series.groupName(page, group)));
    const note = names ? `On the front: ${names}.` : "No run is done yet, so there is no front.";
    return { data: front.length ? [line, ...points] : points, layout, note };
  }

  /* Stacked bars: a row for each group, the parts that any of them has. */
  function bars(plot, page, choice, blocks) {
    const [x] = plot.x;
    const all = series.distinct(blocks.flatMap((block) => block[plot.series]));
    const amount = (block, part) => block[x][block[plot.series].indexOf(part)] ?? 0;
    const parts = all.filter((part) => blocks.some((block) => amount(block, part) > 0));
    const totals = blocks.map((block) => parts.reduce((sum, part) => sum + amount(block, part), 0));
    const unit = unitOf(plot.frame.columns[x], blocks[0]);
    const title = titleOf(plot.frame.columns[x], blocks[0]);
    const xs = choice.share ? edgefl.axis(`share of ${title}`, "share", [1]) : edgefl.axis(title, unit, totals);
    const data = parts.map((part) => ({
      ...HOVER, type: "bar", orientation: "h", name: text(part), textposition: "none",
      marker: series.filled(all.indexOf(part), plot.looks[part]),
      y: blocks.map((_, row) => row),
      x: blocks.map((block, row) => xs.of(amount(block, part) / (choice.share ? totals[row] || 1 : 1))),
      text: blocks.map((block, row) => series.hover(nameOf(page, block),
        `${part}: ${edgefl.number(amount(block, part), unit)}`,
        `${edgefl.number(amount(block, part) / (totals[row] || 1), "share")} of ${edgefl.number(totals[row], unit)}`)),
    }));
    const rows = blocks.map((block) => text(page.groups[block.group].name));
    const layout = { barmode: "stack", bargap: 0.3, xaxis: xs.layout, yaxis: series.rows(rows) };
    return { data, layout: { ...series.legend, ...layout } };
  }

  // Columns of a map: more would be narrower than a point. Names of them that all fit below, and of rows beside.
  const COLUMNS = 200, BELOW = 20, BESIDE = 40;

  function heat(plot, page, choice, [block]) {
    const { columns } = plot.frame;
    const [[x], [y]] = [plot.x, plot.y];
    const [xs, ys, z] = [block[x], block[y], block[plot.z]];
    const places = series.spaced(xs.length, COLUMNS);
    const unit = choice.share ? "share" : unitOf(columns[plot.z], block);
    const total = (row) => z[row].reduce((sum, value) => sum + value, 0);
    const value = (row, place) => (choice.share ? z[row][places[place]] / (total(row) || 1) : z[row][places[place]]);
    const percent = unit === "share" ? 100 : 1;
    const each = (of) => ys.map((_, row) => places.map((_, place) => of(row, place)));
    const label = (column, value) => `${titleOf(column, block)} ${value}`;
    const told = (row, place) => series.hover(
      label(columns[y], ys[row]), label(columns[x], xs[places[place]]),
      `${titleOf(columns[plot.z], block)}: ${edgefl.number(value(row, place), unit)}`,
      plot.share ? `${edgefl.number(z[row][places[place]])} of ${edgefl.number(total(row))}` : "");
    const map = {
      type: "heatmap", colorscale: "Cividis", hoverongaps: false, ...HOVER,
      x: places.map((_, place) => place), y: ys.map((_, row) => row),
      z: each((row, place) => (known(value(row, place)) ? percent * value(row, place) : null)),
      text: each(told), xgap: places.length > 60 ? 0 : 1, ygap: ys.length > 60 ? 0 : 1,
      colorbar: percent > 1 ? { ticksuffix: "%", thickness: 14 } : { title: { text: edgefl.escaped(unit) }, thickness: 14 },
      ...(plot.share ? { zmin: 0 } : {}),
    };
    const axis = (column, names, most) => {
      const ticks = series.everyNth(names.length, most);
      return { title: { text: titleOf(columns[column], block) }, tickmode: "array", showgrid: false, zeroline: false,
               tickvals: ticks, ticktext: ticks.map((place) => text(names[place])) };
    };
    const xaxis = axis(x, places.map((place) => xs[place]), edgefl.narrow() ? BELOW / 2 : BELOW);
    const yaxis = { ...axis(y, ys, BESIDE), range: [ys.length - 0.5, -0.5] };
    const [left, count] = [xs.length - places.length, xs.length].map((one) => edgefl.number(one));
    const note = left === "0" ? "" : `${left} of ${count} columns are not drawn; the CSV has them all.`;
    return { data: [map], layout: { xaxis, yaxis }, note };
  }

  // How much is seen of a bar whose result nobody took. Bars that take a smaller share of the time until the end
  // of the axis are drawn without most of the wait.
  const FAINT = 0.4, SHORT = 0.2;
  const WAIT = { color: "rgba(136, 144, 154, 0.3)" };

  /* A block's rows as bars over time since `from_s`, the last to arrive at the bottom; a line at `to_s`. */
  function gantt(plot, page, choice, [block]) {
    const last = (place) => block.arrived_s[place] ?? block.ended_s[place];
    const rows = placesOf({ rows: block[plot.row] }).sort((one, other) => last(one) - last(other));
    const arrived = Math.max(...rows.map(last), -Infinity);
    const isShort = rows.length > 0 && arrived - block.from_s < SHORT * (block.to_s - block.from_s);
    const end = isShort ? arrived : Math.max(block.to_s, ...rows.map((place) => block.ended_s[place]));
    const title = edgefl.narrow() ? "virtual time" : "virtual time since the first dispatch";
    const xs = edgefl.axis(title, "s", [end - block.from_s]);
    const since = (t) => edgefl.number(t - block.from_s, "s");
    const isFaint = (place) => block.ending[place] !== "merged";
    const away = [];
    const trace = (name, marker, found) => ({
      ...HOVER, type: "bar", orientation: "h", name, textposition: "none",
      marker: { ...marker, opacity: found.map(([row]) => (isFaint(rows[row]) ? FAINT : 1)) },
      y: found.map(([row]) => row), base: found.map(([, from]) => xs.of(from - block.from_s)),
      x: found.map(([, from, to]) => xs.of(to - from)), text: found.map(([, , , told]) => told),
    });
    const stages = plot.spans.map((span, number) => {
      const busy = [];
      rows.forEach((place, row) => {
        const from = block[span.start][place];
        if (!known(from)) return;
        const broken = !known(block[span.end][place]);
        const to = broken ? block.ended_s[place] : block[span.end][place];
        const gone = span.away ? block[span.away][place] : 0;
        const told = series.hover(`client ${block.client[place]}, ${block.device[place]}`,
          `${span.name}${broken ? ", broken off" : ""}: ${edgefl.number(to - from, "s")}`,
          gone > 0 ? `of which ${edgefl.number(gone, "s")} away or paused` : "",
          `from ${since(from)} to ${since(to)} after the first dispatch`,
          isFaint(place) ? `${block.ending[place]}: wasted` : "merged");
        if (to - gone > from) busy.push([row, from, to - gone, told]);
        if (gone > 0) away.push([row, to - gone, to, told]);
      });
      return trace(span.name, span.away ? series.filled(number) : WAIT, busy);
    });
    const absent = trace("away or paused", series.filled(plot.spans.length - 1), away);
    const data = [...stages, absent].filter(({ x }) => x.length);
    const marked = (sign, words) => (edgefl.narrow() ? sign : `${sign} ${words}`);
    const sign = (place) => series.sentences(isFaint(place) && marked("✕", block.ending[place]),
                                             block.waited_for[place] && marked("◀", "waited for"));
    const signs = rows.map((place, row) => [row, place, sign(place)]).filter(([, , words]) => words);
    if (signs.length) data.push({
      type: "scatter", mode: "text", showlegend: false, cliponaxis: false, hoverinfo: "skip",
      textposition: "middle right",
      y: signs.map(([row]) => row), x: signs.map(([, place]) => xs.of(last(place) - block.from_s)),
      text: signs.map(([, , words]) => `<b>${words}</b>`),
    });
    const whole = (place) => (edgefl.narrow() ? "" : `, ${block.device[place]}`);
    const names = rows.map((place) => text(`${block.client[place]}${whole(place)}`));
    const merged = xs.of(block.to_s - block.from_s);
    const shapes = [{ type: "line", xref: "x", yref: "paper", x0: merged, x1: merged, y0: 0, y1: 1,
                      line: { dash: "dash", width: 1.5, color: edgefl.colour("--ink") } }];
    // The words behind the bars stand beside the plot.
    const margin = { r: 12 + 7.5 * Math.max(0, ...signs.map(([, , words]) => words.length)) };
    const layout = { ...series.legend, margin, shapes, barmode: "overlay", bargap: 0.25,
                     xaxis: { ...xs.layout, range: [0, xs.of(end - block.from_s)] },
                     yaxis: { ...series.rows(names, false), title: { text: "client" } } };
    return { data, layout, note: isShort ? "Most of the wait is not drawn." : "" };
  }

  const MARKS = { lines, points, bars, heat, gantt };

  /* What is not drawn, and of whom. */
  function notes(plot, page, choice, drawn) {
    const { x, y } = choice;
    const groups = new Set(drawn.map((block) => groupOf(page, block)));
    const there = new Set(within(plot, choice).map((block) => groupOf(page, block)));
    const named = (wanted) => series.listed(page.groups.flatMap((_, group) =>
      (!groups.has(group) && wanted(group) ? [series.groupName(page, group)] : [])));
    const compared = plot.missing && !isOne(choice);
    const [unknown, never] = [true, false].map((is) => compared && named((group) => there.has(group) === is));
    const left = drawn.reduce((sum, block) => sum + (block[plot.detail] ? 0 : block.left ?? 0), 0);
    const title = (name) => plot.frame.columns[name]?.title;
    const rows = (of) => new Set(of.flatMap((block) => (plot.row ? list(block, plot.row) : [])));
    const shown = new Set(pointsOf(drawn, x).map(([block, place]) => at(block, plot.row, place)));
    const bare = plot.mark === "points" && !y ? [...rows(within(plot, choice))].filter((row) => !shown.has(row)) : [];
    return series.sentences(
      choice.run === FIRST && "Of runs with several seeds the first is drawn.",
      unknown && `Not drawn, since ${[title(x), title(y)].join(" or ")} is unknown: ${unknown}.`,
      bare.length && `Not drawn, since there is no ${title(x)} of them: ${series.listed(bare)}.`,
      never && `Not drawn, since ${plot.missing}: ${never}.`,
      left && `${edgefl.number(left)} ${plot.left}.`,
      ...series.distinct(drawn.flatMap(({ notes }) => [notes?.[""], notes?.[x], notes?.[y]])),
    );
  }

  /** What a declared plot shows: {data, layout, note} for Plotly, or {nothing: words}. */
  edgefl.drawn = (plot, page, choice) => {
    if (!plot.frame.blocks.length) return { nothing: `Nothing to draw: ${plot.nothing}` };
    const all = chosen(plot, page, choice);
    const names = isAxial(plot) ? [choice.x, choice.y] : plot.mark === "heat" ? plot.y : [];
    const isThere = (block) => (name) => !name || (plot.mark === "heat" ? block[name].length : has([block], name));
    const found = all.filter((block) => names.every(isThere(block)));
    if (!found.length || (plot.mark === "lines" && !choice.y)) {
      const told = series.distinct(all.map(({ notes }) => notes?.[""]));
      const words = `Nothing to draw: ${series.sentences(...told) || plot.nothing}`;
      return { nothing: words, chosen: plot.frame.blocks.length > all.length };
    }
    const made = MARKS[plot.mark](plot, page, choice, found);
    const drawn = plot.mark === "bars" ? all : found;
    return { ...made, note: series.sentences(made.note, notes(plot, page, choice, drawn)) };
  };

  /** Its height in pixels. */
  edgefl.heightOf = (plot, page, choice) => {
    const blocks = chosen(plot, page, choice);
    const count = (name) => series.distinct(blocks.flatMap((block) => list(block, name))).length;
    if (plot.mark === "bars") return series.namesHeight(page) + 30;
    if (plot.mark === "heat") return series.rowsHeight(count(plot.y[0]), count(plot.y[0]) > BESIDE / 2 ? 16 : 26);
    if (plot.mark === "gantt") return series.rowsHeight(blocks[0]?.[plot.row].length ?? 0, 24);
    const each = plot.series ? 40 : Math.min(Math.max(page.groups.length * 10, 40), 70);
    if (plot.row) return series.rowsHeight(count(plot.row), each);
    return 400;
  };

  /** Its frame as a table: {columns, rows}, numbers in base units. */
  edgefl.tableOf = (plot, page) => {
    const { columns, blocks } = plot.frame;
    const names = Object.keys(columns);
    const heads = names.map((name) => {
      const { title, unit } = columns[name];
      return unit && !/^(@|share$|index$|loss$)/.test(unit) ? `${title} (${unit})` : title.replace(/^@\w+$/, name);
    });
    const rows = blocks.flatMap((block) => {
      const name = nameOf(page, block);
      if (plot.mark !== "heat") return placesOf(Object.fromEntries(names.map((one) => [one, block[one]])))
        .map((place) => [name, ...names.map((one) => at(block, one, place))]);
      const [[x], [y]] = [plot.x, plot.y];
      return block[plot.z].flatMap((row, at) => row.map((value, place) => {
        const cell = { ...block, [x]: block[x][place], [y]: block[y][at], [plot.z]: value };
        return [name, ...names.map((one) => cell[one])];
      }));
    });
    return { columns: ["run", ...heads], rows };
  };

  /** Whether traces are of groups, which the page's legend hides. */
  edgefl.hasGroups = (plot, choice) => isAxial(plot) && !plot.series && !(plot.detail && isOne(choice));

  edgefl.switchesOf = switchesOf;
})();
