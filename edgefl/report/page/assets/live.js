/* A page that follows runs: new data from the server that sent it. */
(() => {
  const EVERY_MS = 2000;
  const WORDS = {
    gone: "The server does not answer any more; these are its last data.",
    ended: "The run has ended, and this page is not updated any more.",
  };

  const say = (text) => {
    const status = document.getElementById("status");
    status.textContent = text;
    status.hidden = !text;
  };

  /** The text and the tables of each section, which Python made and escaped. */
  function renew({ page, sections }) {
    for (const [id, html] of Object.entries(sections)) {
      const room = document.querySelector(`#${CSS.escape(id)} > .text`);
      if (room.dataset.html === html) continue;
      room.innerHTML = html;
      room.dataset.html = html;
      for (const table of room.querySelectorAll("table.sorts")) edgefl.sorts(table);
    }
    edgefl.renew(page);
  }

  async function ask(tag) {
    const answer = await fetch("data", { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.status === 304) return tag;
    if (!answer.ok) throw Object.assign(new Error(), { ended: answer.status === 404 });
    renew(await answer.json());
    return answer.headers.get("ETag");
  }

  /** Asks for new data until the server is gone. */
  edgefl.follow = async () => {
    let tag = null;
    for (;;) {
      await new Promise((done) => setTimeout(done, EVERY_MS));
      try {
        tag = await ask(tag);
      } catch (error) {
        say(error.ended ? WORDS.ended : WORDS.gone);
        return;
      }
    }
  };
})();
