/* What is wrong with the pictures of a report page: run in the page, once its plots are drawn.
   Ranges and places are Plotly's own, after it has drawn. */
(() => {
  const SIZES = { "µs": 1e-6, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400, days: 86400, "%": 0.01 };
  const PREFIXES = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, m: 1e-3, u: 1e-6, "µ": 1e-6 };
  const BASES = ["s", "B", "J", "FLOP"];
  const finite = Number.isFinite;

  /* A unit's size in its base, and the base as edgefl.number has it. */
  function unit(name) {
    if (name in SIZES) return [SIZES[name], name === "%" ? "share" : "s"];
    const base = BASES.find((one) => name === one || (name.endsWith(one) && name.slice(0, -one.length) in PREFIXES));
    return base ? [PREFIXES[name.slice(0, -base.length)] ?? 1, base] : [1, name];
  }

  /* What an axis says its numbers are: of a log axis its ticks say it, since they are written by the page. */
  function said(axis) {
    if (axis.ticksuffix) return unit(axis.ticksuffix);
    const titled = /\(([\wµ]+)\)$/.exec(axis.title.text ?? "");
    if (titled) return unit(titled[1]);
    const words = axis.type === "log" && axis.ticktext ? axis.ticktext[0].match(/([a-zA-Z]+|%)$/) : null;
    return words ? [1, unit(words[1])[1]] : null;
  }

  const meets = (one, other, spare = 0) =>
    one.right >= other.left - spare && one.left <= other.right + spare &&
    one.bottom >= other.top - spare && one.top <= other.bottom + spare;
  const within = (one, other, spare) =>
    one.left >= other.left - spare && one.right <= other.right + spare &&
    one.top >= other.top - spare && one.bottom <= other.bottom + spare;

  function faultsOf({ plot, node, canvas, words, note }) {
    const found = [];
    if (node.dataset.drawn === "words") {
      return words.textContent.startsWith("Nothing to draw: ") ? [] : [words.textContent];
    }
    if (node.dataset.drawn !== "plot") return ["is not drawn"];
    const { _fullLayout: layout, _fullData: traces, calcdata } = canvas;
    const frame = canvas.getBoundingClientRect();
    const { xaxis: xs, yaxis: ys } = layout;
    const area = { left: frame.left + xs._offset, top: frame.top + ys._offset };
    area.right = area.left + xs._length;
    area.bottom = area.top + ys._length;
    const reach = { x: [], y: [] };

    /* Where a place is along an axis, in pixels; whether that is inside. */
    function at(axis, name, value) {
      const pixel = axis.d2p(value);
      reach[name].push(pixel);
      return pixel >= -1 && pixel <= axis._length + 1;
    }

    /* The number under a mark, read from the axis, is one of those that its hover tells. */
    function agrees(axis, values, text) {
      const found = said(axis);
      if (!found || values.some((value) => value === 0)) return true;
      const [size, base] = found;
      const told = (value) => text.includes(edgefl.escaped(edgefl.number(value * size, base)));
      return values.some((value) => [1 - 1e-9, 1, 1 + 1e-9].some((near) => told(value * near)));
    }

    for (const [number, trace] of traces.entries()) {
      const given = canvas.data[number];
      if (given.visible === false) continue;
      const who = `trace ${trace.name ?? number}`;
      const hovers = given.hovertext ?? given.text;
      const some = (places) => places.filter((_, place) => place % Math.ceil(places.length / 200) === 0);
      if (given.type === "heatmap") {
        if (!given.z.flat().some(finite)) found.push(`${who} has no values`);
        for (const [axis, name, count] of [[xs, "x", given.z[0].length], [ys, "y", given.z.length]]) {
          if (!at(axis, name, -0.5) || !at(axis, name, count - 0.5)) found.push(`${who} leaves its axis ${name}`);
        }
        const bar = { ticksuffix: given.colorbar.ticksuffix, title: {} };
        const wrong = given.z.flatMap((row, y) =>
          row.filter((value, x) => finite(value) && !agrees(bar, [value], given.text[y][x])));
        if (wrong.length) found.push(`${who} is not what its hover tells: ${wrong[0]}`);
      } else if (given.type === "bar") {
        const bars = calcdata[number].filter(({ s }) => finite(s) && s > 0);
        if (!bars.length) found.push(`${who} has no values`);
        const cut = note.textContent.includes("Most of the wait is not drawn");
        for (const { b, s, p, i } of bars) {
          const inside = [at(xs, "x", b), at(xs, "x", b + s) || cut, at(ys, "y", p)];
          if (!inside.every(Boolean)) found.push(`${who} leaves the axes: ${b} to ${b + s} at ${p}`);
          if (!agrees(xs, given.base ? [b, b + s] : [s], given.text[i])) {
            found.push(`${who} is not what its hover tells: ${b} to ${b + s}, ${given.text[i]}`);
          }
        }
      } else {
        const known = (place) => finite(given.x[place]) && finite(given.y[place]);
        const places = given.x.map((_, place) => place).filter(known);
        if (!places.length) found.push(`${who} has no values`);
        const out = places.filter((place) =>
          [at(xs, "x", given.x[place]), at(ys, "y", given.y[place])].includes(false));
        if (given.fill ? out.length === places.length && out.length : out.length) {
          found.push(`${who} leaves the axes: ${given.x[out[0]]}, ${given.y[out[0]]}`);
        }
        for (const place of given.hoverinfo === "skip" ? [] : some(places)) {
          if (!agrees(xs, [given.x[place]], hovers[place]) || !agrees(ys, [given.y[place]], hovers[place])) {
            found.push(`${who} is not what its hover tells: ${given.x[place]}, ${given.y[place]}, ${hovers[place]}`);
          }
        }
      }
      // What the browser has of it: shapes in the area, with a colour.
      const layers = [...canvas.querySelectorAll(".scatterlayer .trace, .barlayer .trace, .heatmaplayer .hm")];
      const own = layers.filter(({ __data__: [first] }) => first.trace.index === number);
      const painted = own.flatMap((one) => [...one.querySelectorAll("path, image, text")]).some((one) => {
        const style = getComputedStyle(one);
        const inked = one.tagName === "image" || (style.fill !== "none" && style.fillOpacity > 0) ||
          (style.stroke !== "none" && style.strokeOpacity > 0);
        return inked && one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
          meets(one.getBoundingClientRect(), area, given.cliponaxis === false ? 100 : 0);
      });
      if (!painted) found.push(`${who} is not painted`);
    }

    // Marks that fill next to nothing of an axis are on one of another unit, or of a wrong range.
    for (const [name, axis] of [["x", xs], ["y", ys]]) {
      const zero = axis.d2p(0);
      const ends = [...reach[name], ...(zero >= -1 && zero <= axis._length + 1 ? [zero] : [])];
      const [low, high] = [Math.min(...ends), Math.max(...ends)];
      if (high - low < 0.03 * axis._length && new Set(reach[name]).size > 1) {
        found.push(`all marks are at one end of axis ${name}`);
      }
    }

    // Labels are whole, and beside each other.
    for (const kind of [".xtick text", ".ytick text", ".annotation text", ".legendtext", ".textpoint text",
                        ".g-xtitle text", ".g-ytitle text", ".cbaxis text", ".cbtitle text"]) {
      const boxes = [...canvas.querySelectorAll(kind)].filter((one) => one.textContent.trim())
        .map((one) => [one.textContent, one.getBoundingClientRect()]);
      for (const [place, [text, box]] of boxes.entries()) {
        if (!within(box, frame, 2)) found.push(`label "${text}" leaves the picture`);
        for (const [other, its] of boxes.slice(place + 1)) {
          if (meets(box, its, -1.5)) found.push(`labels "${text}" and "${other}" overlap`);
        }
      }
      if (/[xy]tick/.test(kind) && !boxes.length && layout[`${kind[1]}axis`].showticklabels) {
        found.push(`axis ${kind[1]} has no ticks`);
      }
    }
    return found;
  }

  /* The plots with some ids, or all. A section that has nothing says so itself, and its plots are hidden. */
  const figures = (ids) => edgefl.state.figures.filter(({ plot, node }) =>
    ids ? ids.includes(plot.id) : node.parentElement.checkVisibility());

  const faults = (ids) => figures(ids).flatMap((figure) =>
    faultsOf(figure).map((fault) => `${figure.plot.id}: ${fault}`));

  /* Uses each switch of each plot in turn, as a user would: [plot, what is wrong then]. */
  async function used(ids) {
    const found = [];
    for (const figure of figures(ids)) {
      const switches = () => [...figure.switches.querySelectorAll("[name]")];
      const use = async (control, act) => {
        act(control);
        control.dispatchEvent(new Event(control.type === "range" ? "input" : "change"));
        // What is wrong at once may be margins that Plotly still makes.
        if (faultsOf(figure).length) await new Promise((done) => setTimeout(done, 200));
        found.push([figure.plot.id, faultsOf(figure).map((one) => `${one} ${JSON.stringify(figure.choice)}`)]);
      };
      for (let place = 0; place < switches().length; place += 1) {
        const { type, options, max } = switches()[place];
        const again = () => switches()[place];
        if (type === "select-one") for (let one = 0; one < options.length; one += 1) {
          await use(again(), (control) => { control.selectedIndex = one; });
        }
        if (type === "range") for (const one of [0, max]) await use(again(), (control) => { control.value = one; });
        if (type === "radio") await use(again(), (control) => { control.checked = true; });
        if (type === "checkbox") for (const one of [true, false]) {
          await use(again(), (control) => { control.checked = one; });
        }
      }
    }
    return found;
  }

  /* The areas inside the axes, in pixels of the whole page. */
  const areas = () => figures().filter(({ node }) => node.dataset.drawn === "plot").map(({ plot, canvas }) => {
    const { left, top } = canvas.getBoundingClientRect();
    const { xaxis: xs, yaxis: ys } = canvas._fullLayout;
    return [plot.id, left + xs._offset + scrollX, top + ys._offset + scrollY, xs._length, ys._length];
  });

  return { faults, used, areas };
})()
