/* A page of runs that go on: loads itself again, until what it loads is a page of runs that have ended. */
(() => {
  const EVERY_MS = 5000;
  const STILL_MS = 2000;
  const KEY = `edgefl ${location.pathname}`;
  const every = (selector) => [...document.querySelectorAll(selector)];
  const MOVED = ["pointermove", "pointerdown", "keydown", "wheel"];

  /** What a user has chosen: switches, runs that are hidden, opened details, light or dark, and the place. */
  function chosen() {
    const shown = every("figure.plot, section").filter((one) => one.offsetHeight);
    const first = shown.findLast((one) => one.getBoundingClientRect().top <= 1);
    return {
      switches: every("#main [name]").filter((one) => one.type !== "radio" || one.checked)
        .map(({ name, type, checked, value }) => ({ name, type, checked, value })),
      hidden: every(".legend [aria-pressed=false]").map((one) => one.title),
      details: every("details").map((one) => one.open),
      theme: document.documentElement.dataset.theme,
      place: first && { id: first.id, top: first.getBoundingClientRect().top },
    };
  }

  function choose({ switches, hidden, details, theme, place }) {
    if (theme && (theme === "dark") !== edgefl.isDark()) document.getElementById("theme").click();
    for (const { name, type, checked, value } of switches) {
      const one = every("#main [name]").find((it) => it.name === name && (type !== "radio" || it.value === value));
      if (!one || (one.value === value && one.checked === checked)) continue;
      Object.assign(one, { value, checked });
      one.dispatchEvent(new Event(type === "range" ? "input" : "change"));
    }
    for (const title of new Set(hidden)) every(".legend [aria-pressed=true]").find((one) => one.title === title)?.click();
    every("details").forEach((one, number) => { one.open = details[number]; });
    if (place) hold(place, Date.now() + STILL_MS);
  }

  /** Keeps a place where it was, while the plots above it are drawn. */
  function hold(place, until) {
    if (moved || Date.now() > until) return;
    scrollBy(0, document.getElementById(place.id).getBoundingClientRect().top - place.top);
    setTimeout(() => hold(place, until), 100);
  }

  let moved = 0;

  edgefl.follow = () => {
    for (const name of MOVED) addEventListener(name, () => { moved = Date.now(); }, { passive: true });
    const before = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    if (before) choose(JSON.parse(before));
    const written = document.getElementById("status")?.dataset.written;
    if (!written) return;
    history.scrollRestoration = "manual";
    // A run that was killed, or whose rounds are long, is looked at less and less often.
    const from = Date.now() + Math.max(EVERY_MS, (Date.now() - 1000 * written) / 4);
    setInterval(() => {
      if (document.hidden || Date.now() < Math.max(from, moved + STILL_MS)) return;
      sessionStorage.setItem(KEY, JSON.stringify(chosen()));
      location.reload();
    }, 500);
  };
})();
