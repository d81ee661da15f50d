"use strict";

/* The page's one global. A plot is a file in plots/ that calls edgefl.plot; start.js begins when all are known.

   edgefl.plot({
     id,         unique, letters and hyphens; the figure's address in the page is #plot-ID
     section,    the id of the page's section that it stands in, such as "costs"
     title,      its heading, text
     why,        one sentence below the heading: what is seen, in which unit; text, or page -> text
     controls,   a list of switches, or (page, choice) -> list; each {name, label, kind, ...}:
                   kind "radio" | "select": options [{value, label}]; "check": a boolean;
                   "slider": values [...], text: value -> "round 12", jumps [{label, value}]: buttons; all: initial (the first by default).
                 A switch with fewer than two options is not shown. choice[name] is its value.
     height,     pixels, or (page, choice) -> pixels; 380 by default
     groups,     false, or (page, choice) -> false, where no trace is of a group: there is no legend of runs then
     draw(page, choice),    -> {data, layout} for Plotly, or {nothing: "words"} where there is nothing to draw,
                            with `chosen` where another choice may draw something; a `note` stands below the plot
     table(page, choice),   -> {columns: ["round", "bytes (B)"], rows: [[...]]}: the same data as text and CSV
   })

   A trace with `group: N` is of that group: it gets its name, and is hidden with it in all plots.
   edgefl.line(page, N, more) is a trace with the group's colour and dash.
   Texts for Plotly go through edgefl.text(name), since Plotly reads some HTML and TeX. Numbers with units and axes for
   them are in numbers.js, names of runs and looks of parts in series.js.
   draw must not change page. All numbers are in it; nothing is reckoned here but places on the screen. */
const edgefl = (() => {
  const plots = [];
  const state = { page: null, hidden: new Set(), figures: [] };
  const LONGEST = 48;
  const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", $: "&#36;" };

  /** Registers a plot; see above. */
  function plot(one) {
    if (plots.some((other) => other.id === one.id)) throw new Error(`two plots are called ${one.id}`);
    plots.push({ controls: [], height: 380, groups: true, ...one });
  }

  /** An element: attributes, listeners ("onclick") and children, texts among them. */
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (typeof value === "function") made.addEventListener(key.slice(2), value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value != null) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child != null));
    return made;
  }

  /** A name short enough for a legend; its full text is in the tables. */
  function short(name) {
    const line = name.replace(/\s*\n\s*/g, ", ");
    const characters = Array.from(line);
    return characters.length > LONGEST ? `${characters.slice(0, LONGEST - 1).join("")}…` : line;
  }

  /** A text for Plotly, which would read <b>, <a>, entities and $TeX$ in it. */
  const escaped = (words) => words.replace(/[&<>$]/g, (sign) => ENTITIES[sign]);

  /** A name for Plotly, short and harmless; bidirectional marks cannot leave it. */
  const text = (name) => `\u2068${escaped(short(String(name)))}\u2069`;

  /** A group's name, for Plotly. */
  const label = (page, group) => text(page.groups[group].name);

  /** A line of a group: its name, colour and dash. */
  function line(page, group, more = {}) {
    const { colour, dash } = page.groups[group];
    return { type: "scatter", mode: "lines", name: label(page, group), group, ...more,
             line: { color: colour, dash, width: 2, ...more.line } };
  }

  /** A colour "#rrggbb" that lets through what is behind it. */
  function faint(colour, opacity = 0.18) {
    const [red, green, blue] = [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
    return `rgba(${red},${green},${blue},${opacity})`;
  }

  return { plots, state, plot, element, short, escaped, text, label, line, faint };
})();
