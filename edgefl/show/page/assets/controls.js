/* The switches of a plot. */
(() => {
  const { element } = edgefl;

  /** What is chosen: as before where that is still there, else what a switch begins with. */
  edgefl.chosen = (controls, before) => {
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
  edgefl.switches = (plot, controls, choice, changed) =>
    controls
      .filter((one) => one.kind === "check" || one.options.length > 1)
      .map((one) => KINDS[one.kind](plot.id, one, choice[one.name], (value) => changed(one.name, value)));
})();
