/* Begins: unpacks Plotly and the data, and puts the plots into the page. */
(() => {
  const { element } = edgefl;

  /** The text of a script element that holds gzip in base64. */
  async function unpacked(id) {
    const packed = atob(document.getElementById(id).textContent);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  function failed(error) {
    const told = element("p", { role: "alert", class: "words" },
      "The plots cannot be drawn in this browser; the tables are complete. ", String(error));
    document.getElementById("main").prepend(told);
    console.error(error);
  }

  async function start() {
    const found = JSON.parse(await unpacked("data"));
    edgefl.theme();
    for (const table of document.querySelectorAll("table.sorts")) edgefl.sorts(table);
    // Its hash is in the page's policy: the page runs this text and no other.
    document.head.append(element("script", {}, await unpacked("plotly")));
    edgefl.place(found.page);
    document.documentElement.dataset.ready = "yes";
    edgefl.follow();
  }

  start().catch(failed);
})();
