// Searches the index that was made with these pages. Works from file://: the index is a script, not a request.
(function () {
  "use strict";
  const SHOWN_MAX = 30;
  const base = document.documentElement.dataset.base;
  const query = document.getElementById("query");
  const found = document.getElementById("found");
  let asked = false;

  function load() {
    if (asked) return;
    asked = true;
    const script = document.createElement("script");
    script.src = base + "search-index.js";
    script.onload = search;
    document.head.append(script);
  }

  // A section counts if it has every word, in its page's title, its heading or its text.
  function weigh(words, title, heading, text) {
    let weight = 0;
    for (const word of words) {
      if (heading.includes(word)) weight += heading === word ? 12 : 6;
      else if (title.includes(word)) weight += 3;
      else if (text.includes(word)) weight += 1;
      else return 0;
    }
    return weight;
  }

  function matches(words) {
    const hits = [];
    for (const [title, path, sections] of window.PRONY_PAGES) {
      for (const [anchor, heading, text] of sections) {
        const weight = weigh(words, title.toLowerCase(), heading.toLowerCase(), text);
        if (weight > 0) hits.push({ weight, title, heading, to: base + path + "#" + anchor });
      }
    }
    return hits.sort((a, b) => b.weight - a.weight);
  }

  function search() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = words.length === 0 || !window.PRONY_PAGES;
    if (found.hidden) return;
    const hits = matches(words);
    const list = document.createElement("ul");
    for (const hit of hits.slice(0, SHOWN_MAX)) {
      const link = document.createElement("a");
      link.href = hit.to;
      link.textContent = hit.heading;
      const page = document.createElement("small");
      page.textContent = hit.title;
      const item = document.createElement("li");
      item.append(link, page);
      list.append(item);
    }
    const count = document.createElement("small");
    count.textContent = hits.length === 0 ? "Nothing found" : hits.length + " sections";
    found.replaceChildren(count, list);
  }

  query.addEventListener("focus", load);
  query.addEventListener("input", function () { load(); search(); });
  query.addEventListener("keydown", function (event) {
    const first = found.querySelector("a");
    if (event.key === "Enter" && first) first.click();
    if (event.key === "Escape") { query.value = ""; search(); }
  });
  found.addEventListener("click", function () { found.hidden = true; });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && document.activeElement !== query) { event.preventDefault(); query.focus(); }
  });
})();
