/* The switches of a plot. */
(() => {
  const { element } = edgefl;

  const optionsOf = (one) => one.options ?? (one.values ?? []).map((value) => ({ value, label: String(value) }));

  /** What is chosen: as before where that is still there, else what a switch begins with. */
  edgefl.chosen = (controls, before) => {
    const choice = {};
    for (const one of controls) {
      const values = one.kind === "check" ? [false, true] : optionsOf(one).map((option) => option.value);
      const kept = before[one.name];
      choice[one.name] = values.includes(kept) ? kept : one.initial ?? values[0];
    }
    return choice;
  };

  function radio(id, one, value, changed) {
    const inputs = optionsOf(one).map((option) => {
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
    const options = optionsOf(one);
    const list = element("select", { name: `${id}-${one.name}`,
                                     onchange: (event) => changed(options[event.target.selectedIndex].value) },
      ...options.map((option) => element("option", { selected: option.value === value }, option.label)));
    return element("label", { class: "select" }, element("span", {}, one.label), list);
  }

  function slider(id, one, value, changed) {
    const { values } = one;
    const words = one.text ?? String;
    const told = element("output", {}, words(value));
    const input = element("input", { type: "range", name: `${id}-${one.name}`, min: 0, max: values.length - 1, step: 1,
                                     value: values.indexOf(value), "aria-valuetext": words(value),
                                     oninput: () => {
                                       const now = values[input.valueAsNumber];
                                       told.textContent = words(now);
                                       input.setAttribute("aria-valuetext", words(now));
                                       changed(now);
                                     } });
    const jump = ({ label, value: to }) => element("button", { type: "button", onclick: () => {
      input.value = values.indexOf(to);
      input.dispatchEvent(new Event("input"));
    } }, label);
    return element("div", { class: "slider" },
      element("label", {}, element("span", {}, one.label), input, told), ...(one.jumps ?? []).map(jump));
  }

  const KINDS = { radio, check, select, slider };

  /** The switches as elements; `changed(name, value)` is called when one is used. */
  edgefl.switches = (plot, controls, choice, changed) =>
    controls
      .filter((one) => one.kind === "check" || optionsOf(one).length > 1)
      .map((one) => KINDS[one.kind](plot.id, one, choice[one.name], (value) => changed(one.name, value)));
})();
