/* A page that follows runs: new data from the server that sent it, until these are of a page that is not live. */
(() => {
  const FIRST_MS = 2000;
  const LONGEST_MS = 60_000;
  const ENDED = "The runs have ended; this page is no longer updated.";
  const GONE = "The server does not answer; these are its last data. Trying again.";
  const shown = new Map();

  const say = (text) => {
    const status = document.getElementById("status");
    if (status.textContent !== text) status.textContent = text;
    status.hidden = !text;
  };

  /** What a user has done to a section's text: which details are open, and how tables are sorted. */
  function opened(room) {
    const details = [...room.querySelectorAll("details[open] > summary")].map((one) => one.textContent);
    const sorted = [...room.querySelectorAll("table")].map((table) => {
      const place = [...table.tHead.rows[0].cells].findIndex((head) => head.ariaSort);
      return place < 0 ? null : { place, clicks: table.tHead.rows[0].cells[place].ariaSort === "ascending" ? 1 : 2 };
    });
    return { details, sorted };
  }

  function reopen(room, { details, sorted }) {
    for (const summary of room.querySelectorAll("details > summary")) {
      summary.parentElement.open = details.includes(summary.textContent);
    }
    room.querySelectorAll("table").forEach((table, number) => {
      const { place, clicks } = sorted[number] ?? { clicks: 0 };
      for (let click = 0; click < clicks; click += 1) table.tHead.rows[0].cells[place]?.querySelector("button")?.click();
    });
  }

  /** The text and the tables of each section, which Python made and escaped. */
  function renew({ page, sections }) {
    for (const [id, html] of Object.entries(sections)) {
      const room = document.querySelector(`#${CSS.escape(id)} > .text`);
      if (shown.get(id) === html) continue;
      shown.set(id, html);
      const before = opened(room);
      room.innerHTML = html;
      for (const table of room.querySelectorAll("table.sorts")) edgefl.sorts(table);
      reopen(room, before);
    }
    edgefl.renew(page);
  }

  /** Asks for data, and returns their tag; that of the last ones where there are no others. */
  async function ask(tag) {
    const answer = await fetch("data", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.status === 304) return tag;
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    renew(await answer.json());
    return answer.headers.get("ETag");
  }

  /** Asks for new data as long as runs go on; where nobody answers, less and less often. */
  edgefl.follow = async () => {
    let tag = null;
    let wait = FIRST_MS;
    while (edgefl.state.page.live) {
      await new Promise((done) => setTimeout(done, wait));
      try {
        tag = await ask(tag);
        wait = FIRST_MS;
        say("");
      } catch {
        wait = Math.min(2 * wait, LONGEST_MS);
        say(GONE);
      }
    }
    say(ENDED);
  };
})();
