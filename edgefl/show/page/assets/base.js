"use strict";

/* The page's one global, and what all scripts use. Texts for Plotly go through edgefl.text, since Plotly reads some
   HTML and TeX. */
const edgefl = (() => {
  const state = { page: null, hidden: new Set(), figures: [] };
  const LONGEST = 48;
  const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", $: "&#36;" };

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

  /** A line of a group: its name, colour and dash. */
  function line(page, group, more = {}) {
    const { name, colour, dash } = page.groups[group];
    return { type: "scatter", mode: "lines", name: text(name), group, ...more,
             line: { color: colour, dash, width: 2, ...more.line } };
  }

  /** A colour "#rrggbb" that lets through what is behind it. */
  const faint = (colour) => `${colour}2e`;

  const known = (value) => typeof value === "number" && Number.isFinite(value);

  return { state, known, element, short, escaped, text, line, faint };
})();
