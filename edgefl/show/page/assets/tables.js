/* Tables: those that Python made sort by a click on a heading; those of plots are made here. Downloads. */
(() => {
  const { element } = edgefl;
  const MOST_ROWS = 500;

  /** A file for the user. */
  edgefl.save = (name, text, type) => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    element("a", { href: url, download: `edgefl-${name}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };

  // What makes a spreadsheet run a text as a formula, as in show/formats.py: it is quoted.
  const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
  const cell = (value) => {
    if (value == null || Number.isNaN(value)) return "";
    const text = typeof value === "string" && FORMULA.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };

  /** The data of a plot as a CSV file. */
  edgefl.saveCsv = (name, { columns, rows }) => {
    const lines = [columns, ...rows].map((row) => row.map(cell).join(","));
    edgefl.save(`${name}.csv`, `${lines.join("\r\n")}\r\n`, "text/csv");
  };

  const shown = (value) => (typeof value === "number" ? edgefl.number(value) : value == null ? "-" : String(value));

  /** A plot's data as a table; of very long ones the first rows. */
  edgefl.dataTable = (title, { columns, rows }) => {
    const table = element("table", { class: "sorts" },
      element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows.slice(0, MOST_ROWS).map((row) => element("tr", {}, ...row.map((value) =>
        element("td", { class: typeof value === "number" ? "number" : "", "data-value": value }, shown(value)))))));
    edgefl.sorts(table);
    const left = rows.length - MOST_ROWS;
    return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Data of ${title}` }, table,
      left > 0 ? element("p", {}, `${left.toLocaleString("en")} more rows are in the CSV file.`) : null);
  };

  const keyOf = (row, place) => {
    const found = row.cells[place];
    const value = found?.dataset.value ?? found?.textContent.trim() ?? "";
    return value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
  };

  // Numbers first, then texts, what is missing last.
  const before = (one, other) => {
    if (typeof one === "number" && typeof other === "number") return one - other;
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return one.localeCompare(other, "en", { numeric: true });
  };

  /** Puts a button into each heading of a table, which sorts its rows by that column. */
  edgefl.sorts = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      const button = element("button", { type: "button", onclick: () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const [body] = table.tBodies;
        const rows = [...body.rows].map((row) => [keyOf(row, place), row]);
        rows.sort(([one], [other]) => (up ? 1 : -1) * before(one, other));
        body.append(...rows.map(([, row]) => row));
      } }, ...head.childNodes);
      if (button.textContent.trim()) head.replaceChildren(button);
    });
  };
})();
