/* Light and dark, and what Plotly takes of them. */
(() => {
  const { element, state } = edgefl;
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");

  // What a plot is wide in print, which has a page's width whatever the screen's is.
  const PRINTED = 720;

  const isDark = () => !state.printing && (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

  /** What a CSS colour of the page, such as "--ink", comes to now. */
  edgefl.colour = (name) => {
    const probe = element("span", { style: `color: var(${name})` });
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  /** The layout that all plots share, in the colours of the moment. */
  edgefl.layout = (full) => {
    const [ink, rule, paper] = ["--ink", "--rule", "--paper"].map(edgefl.colour);
    // Numbers are in units of ours: Plotly's prefixes, such as k, would come on top of them.
    const digits = { exponentformat: "power", minexponent: 5, separatethousands: true };
    const rules = { gridcolor: rule, linecolor: rule, zerolinecolor: rule, minor: { gridcolor: rule } };
    const axis = { ...rules, ...digits, automargin: true, showline: true, title: { standoff: 8 } };
    return {
      ...full,
      ...(state.printing ? { width: PRINTED } : {}),
      template: { layout: {
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, hovermode: "closest",
        dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
        margin: { l: 56, r: 22, t: 12, b: 48 },
        font: { family: "system-ui, sans-serif", size: 12, color: ink },
        hoverlabel: { bgcolor: paper, bordercolor: rule, font: { color: ink }, namelength: -1 },
        xaxis: axis, yaxis: axis,
      } },
    };
  };
  edgefl.isDark = isDark;

  function button() {
    const found = document.getElementById("theme");
    if (!found) return;
    const tell = () => found.setAttribute("aria-pressed", String(isDark()));
    found.hidden = false;
    tell();
    found.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      tell();
      edgefl.redraw();
    });
    dark.addEventListener("change", () => {
      tell();
      edgefl.redraw();
    });
  }

  /** In print the page is light, and plots that were never in view are drawn too. */
  function print() {
    const turn = (now) => {
      if (Boolean(state.printing) === now) return;
      state.printing = now;
      // Its rules hold before the browser has turned to those of print.
      root.toggleAttribute("data-printing", now);
      edgefl.redraw(now);
    };
    printing.addEventListener("change", (event) => turn(event.matches));
    addEventListener("beforeprint", () => turn(true));
    addEventListener("afterprint", () => turn(false));
  }

  edgefl.theme = () => {
    button();
    print();
  };
})();
