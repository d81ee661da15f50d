/* A plot on the page: heading, switches, legend, picture, downloads, and its data as a table. */
(() => {
  const { element, state } = edgefl;
  const CONFIG = { displayModeBar: false, responsive: true, displaylogo: false };
  const LINE = 18;

  /** What is chosen: as before where that is still there, else what a switch begins with. */
  const chosen = (controls, before) => {
    const choice = {};
    for (const one of controls) {
      const values = one.kind === "check" ? [false, true] : one.options.map((option) => option.value);
      const kept = before[one.name];
      choice[one.name] = values.includes(kept) ? kept : one.initial ?? values[0];
    }
    return choice;
  };

  function radio(id, one, value, changed) {
    const inputs = one.options.map((option) => {
      const input = element("input", { type: "radio", name: `${id}-${one.name}`, checked: option.value === value,
                                       value: option.value, onchange: () => changed(option.value) });
      return element("label", {}, input, element("span", {}, option.label));
    });
    return element("fieldset", { class: "radio" }, element("legend", {}, one.label), ...inputs);
  }

  function check(id, one, value, changed) {
    const input = element("input", { type: "checkbox", name: `${id}-${one.name}`, checked: value,
                                     onchange: (event) => changed(event.target.checked) });
    return element("label", { class: "check" }, input, element("span", {}, one.label));
  }

  function select(id, one, value, changed) {
    const { options } = one;
    const list = element("select", { name: `${id}-${one.name}`,
                                     onchange: (event) => changed(options[event.target.selectedIndex].value) },
      ...options.map((option) => element("option", { selected: option.value === value }, option.label)));
    return element("label", { class: "select" }, element("span", {}, one.label), list);
  }

  function slider(id, one, value, changed) {
    const { options } = one;
    const placeOf = (wanted) => options.findIndex((option) => option.value === wanted);
    const words = options[placeOf(value)].label;
    const told = element("output", {}, words);
    const input = element("input", { type: "range", name: `${id}-${one.name}`, min: 0, max: options.length - 1, step: 1,
                                     value: placeOf(value), "aria-valuetext": words,
                                     oninput: () => {
                                       const now = options[input.valueAsNumber];
                                       told.textContent = now.label;
                                       input.setAttribute("aria-valuetext", now.label);
                                       changed(now.value);
                                     } });
    const jump = ({ label, value: to }) => element("button", { type: "button", onclick: () => {
      input.value = placeOf(to);
      input.dispatchEvent(new Event("input"));
    } }, label);
    return element("div", { class: "slider" },
      element("label", {}, element("span", {}, one.label), input, told), ...(one.jumps ?? []).map(jump));
  }

  const KINDS = { radio, check, select, slider };

  /** The switches as elements; `changed(name, value)` is called when one is used. */
  const switches = (plot, controls, choice, changed) =>
    controls
      .filter((one) => one.kind === "check" || one.options.length > 1)
      .map((one) => KINDS[one.kind](plot.id, one, choice[one.name], (value) => changed(one.name, value)));

  class Figure {
    constructor(plot) {
      this.plot = plot;
      this.choice = {};
      this.seen = false;
      this.switches = element("div", { class: "switches" });
      this.legend = element("ul", { class: "legend", "aria-label": `Runs in: ${plot.title}` });
      this.canvas = element("div", { class: "canvas" });
      this.words = element("p", { class: "words", hidden: true });
      this.note = element("p", { class: "note", hidden: true });
      this.picture = element("button", { type: "button", onclick: () => this.save() }, "SVG");
      this.csv = element("button", { type: "button", onclick: () => edgefl.saveCsv(plot.id, this.table()) }, "CSV");
      this.picture.setAttribute("aria-label", `Download ${plot.title} as SVG`);
      this.csv.setAttribute("aria-label", `Download the data of ${plot.title} as CSV`);
      this.details = element("details", { ontoggle: () => this.tell() }, element("summary", {}, "Table", element("span", { class: "unseen" }, ` of the data of ${plot.title}`)));
      this.downloads = element("div", { class: "downloads" }, this.picture, this.csv, this.details);
      const heading = element("h3", { id: `plot-${plot.id}-title` }, plot.title);
      this.node = element("figure", { class: "plot", id: `plot-${plot.id}`, "aria-labelledby": heading.id },
        heading, element("p", { class: "why" }, plot.why), this.switches, this.legend, this.canvas, this.note, this.words,
        this.downloads);
      this.guarded(() => {
        this.adapt();
        legend(this);
      });
    }

    table() {
      return edgefl.tableOf(this.plot, state.page);
    }

    /** A mistake in one plot leaves the others as they are. */
    guarded(act) {
      try {
        act();
      } catch (error) {
        this.tellNothing("This plot could not be drawn.");
        console.error(`plot ${this.plot.id}`, error);
      }
    }

    draw() {
      this.seen = true;
      this.guarded(() => this.drawn());
    }

    /** Words in place of the picture; an empty text shows the picture. Unless another choice may draw something,
        there is nothing to choose and nothing to save. */
    tellNothing(words, chosen = false) {
      this.words.textContent = words;
      this.words.hidden = !words;
      for (const part of [this.canvas, this.legend, this.note, this.picture]) part.hidden = Boolean(words);
      for (const part of [this.switches, this.downloads]) part.hidden = Boolean(words) && !chosen;
      this.node.dataset.drawn = words ? "words" : "plot";
    }

    /** The switches that go with what is chosen; the one in use keeps the focus. */
    adapt() {
      const controls = edgefl.switchesOf(this.plot, state.page, this.choice);
      this.choice = chosen(controls, this.choice);
      const kept = JSON.stringify(controls);
      if (kept === this.kept) return;
      this.kept = kept;
      const used = this.switches.contains(document.activeElement) ? document.activeElement.name : null;
      this.switches.replaceChildren(...switches(this.plot, controls, this.choice, (name, now) => {
        this.choice = { ...this.choice, [name]: now };
        this.guarded(() => this.adapt());
        this.draw();
      }));
      const same = [...this.switches.querySelectorAll("[name]")].filter((one) => one.name === used);
      (same.find((one) => one.checked) ?? same[0])?.focus();
    }

    /** Draws, or says in words why there is nothing to draw. */
    drawn() {
      const found = edgefl.drawn(this.plot, state.page, this.choice);
      this.tellNothing(found.nothing ?? "", found.chosen);
      if (found.nothing) return;
      // On a narrow screen the entries of a legend stand below each other.
      const entries = edgefl.narrow() && found.layout?.showlegend ? found.data.length : 0;
      const height = edgefl.heightOf(this.plot, state.page, this.choice) + LINE * entries;
      this.canvas.style.height = `${height}px`;
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", `${this.plot.title}; its numbers are in the table below`);
      legendOf(this, found.data);
      this.note.textContent = found.note ?? "";
      this.note.hidden = !found.note;
      this.shown = this.ready(found);
      // Plotly measures its room once; another choice may need another height.
      Plotly.react(this.canvas, this.shown.data, edgefl.layout({ height, ...this.shown.layout }), CONFIG);
      this.tell();
    }

    /** What was drawn, without what is hidden. */
    ready({ data, layout = {} }) {
      const traces = data.map(({ group, ...trace }) =>
        group === undefined ? trace : { ...trace, meta: { group }, visible: !state.hidden.has(group) });
      return { data: traces, layout };
    }

    /** The picture as a file, with a legend in it. */
    async save() {
      if (!this.shown) this.draw();
      const title = { text: edgefl.text(this.plot.title), automargin: true, yref: "container", x: 0.02, xanchor: "left" };
      const legend = edgefl.hasGroups(this.plot, this.choice) ? edgefl.series.legend : {};
      const layout = edgefl.layout({ ...legend, ...this.shown.layout, title, paper_bgcolor: edgefl.colour("--paper") });
      const size = { width: this.canvas.clientWidth || 900, height: this.canvas.clientHeight + 80 };
      const url = await Plotly.toImage({ data: this.shown.data, layout }, { format: "svg", ...size });
      edgefl.save(`${this.plot.id}.svg`, decodeURIComponent(url.slice(url.indexOf(",") + 1)), "image/svg+xml");
    }

    /** The data as a table, once somebody asks for it. */
    tell() {
      if (!this.details.open) return;
      this.details.querySelector(".scroll")?.remove();
      this.details.append(edgefl.dataTable(this.plot.title, this.table()));
    }
  }

  /** A button for each group; it hides the group in all plots. */
  const legend = (figure) => {
    if (!edgefl.hasGroups(figure.plot, {})) return;
    const { groups } = state.page;
    figure.legend.replaceChildren(...groups.map((group, place) => {
      const pressed = !state.hidden.has(place);
      const button = element("button", { type: "button", "aria-pressed": String(pressed), title: group.name.slice(0, 500),
                                         onclick: () => hide(place) },
        swatch(group), element("bdi", {}, edgefl.short(group.name)));
      return element("li", {}, button);
    }));
    if (groups.length < MANY) return;
    const all = element("button", { type: "button", class: "all", onclick: hideAll }, allWords());
    figure.legend.prepend(element("li", {}, all));
  };

  // With so many groups one button hides them all, so that a few can be chosen.
  const MANY = 4;
  const allWords = () => (state.hidden.size ? "Show all" : "Hide all");

  /** The legend has the groups that are drawn. */
  const legendOf = (figure, traces) => {
    const drawn = new Set(traces.map(({ group }) => group).filter((group) => group !== undefined));
    figure.legend.hidden = !drawn.size;
    figure.legend.querySelectorAll("[aria-pressed]").forEach((button, group) => {
      button.parentElement.hidden = !drawn.has(group);
    });
    for (const button of figure.legend.querySelectorAll(".all")) button.parentElement.hidden = drawn.size < MANY;
  };

  const DASHES = { solid: "", dot: "2 2", dash: "6 3", longdash: "9 3", dashdot: "6 2 2 2", longdashdot: "9 2 2 2" };

  /** A group's line, in its colour and dash. */
  const swatch = ({ colour, dash }) => {
    const space = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(space, "svg");
    const line = document.createElementNS(space, "line");
    for (const [key, one] of Object.entries({ viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" })) {
      picture.setAttribute(key, one);
    }
    const drawn = { x1: 0, y1: 4, x2: 28, y2: 4, stroke: colour, "stroke-width": 3, "stroke-dasharray": DASHES[dash] };
    for (const [key, one] of Object.entries(drawn)) line.setAttribute(key, one);
    picture.append(line);
    return picture;
  };

  /** Hides a group in all plots, or shows it again. */
  const hide = (group) => {
    if (!state.hidden.delete(group)) state.hidden.add(group);
    hidden();
  };

  /** Hides all groups, or where some are hidden shows them all. */
  const hideAll = () => {
    state.hidden = new Set(state.hidden.size ? [] : state.page.groups.keys());
    hidden();
  };

  function hidden() {
    for (const figure of state.figures) {
      figure.legend.querySelectorAll("[aria-pressed]").forEach((button, group) => {
        button.setAttribute("aria-pressed", String(!state.hidden.has(group)));
      });
      for (const button of figure.legend.querySelectorAll(".all")) button.textContent = allWords();
    }
    const drawn = state.figures.filter((figure) => figure.seen);
    for (const figure of drawn.filter(inView)) figure.draw();
    waiting = drawn.filter((figure) => !inView(figure));
    setTimeout(drawNext);
  }

  // Plots out of view are drawn again one by one, so that those in view answer at once.
  let waiting = [];
  function drawNext() {
    waiting.shift()?.draw();
    if (waiting.length) setTimeout(drawNext);
  }

  function inView({ node }) {
    const { top, bottom } = node.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  }

  /** Draws again what is drawn; all plots where `all`. */
  edgefl.redraw = (all = false) => {
    for (const figure of state.figures) if (all || figure.seen) figure.draw();
  };

  /** Puts every plot into its section; each is drawn when it comes into view. */
  edgefl.place = (page) => {
    state.page = page;
    const watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        const figure = state.figures.find((one) => one.node === target);
        if (!isIntersecting || figure.seen) continue;
        watcher.unobserve(target);
        figure.draw();
      }
    }, { rootMargin: "300px" });
    for (const plot of page.plots) {
      const figure = new Figure(plot);
      state.figures.push(figure);
      document.querySelector(`#${CSS.escape(plot.section)} .plots`).append(figure.node);
      watcher.observe(figure.node);
    }
  };
})();
