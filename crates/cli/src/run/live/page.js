// Puts the next states of a running experiment into this page, without reloading it: what is folded open, where a table is
// scrolled to and the place on the page stay.
(function () {
  "use strict";
  const line = document.getElementById("live");
  const kept = ["details", ".more input", ".scroll"];

  function state() {
    return kept.map(function (what) {
      return Array.from(document.querySelectorAll(what), function (e) {
        return { open: e.open, checked: e.checked, left: e.scrollLeft };
      });
    });
  }

  function restore(states) {
    kept.forEach(function (what, at) {
      document.querySelectorAll(what).forEach(function (e, index) {
        const was = states[at][index];
        if (!was) return;
        if (what === "details") e.open = was.open;
        if (what === ".more input") e.checked = was.checked;
        if (what === ".scroll") e.scrollLeft = was.left;
      });
    });
  }

  async function update() {
    const answer = await fetch("/");
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const states = state(), x = scrollX, y = scrollY;
    for (const part of ["header", "main"]) {
      const old = document.querySelector(part), now = next.querySelector(part);
      if (old && now) old.replaceWith(now);
    }
    for (const style of next.querySelectorAll("style")) {
      if (!document.querySelector("style")) document.head.append(style);
    }
    document.title = next.title;
    line.textContent = next.getElementById("live").textContent;
    restore(states);
    scrollTo(x, y);
  }

  const source = new EventSource("/events?since=" + line.dataset.state);
  source.onmessage = update;
  source.addEventListener("last", function () { source.close(); update(); });
  // The browser tries again by itself; the next state replaces this.
  source.onerror = function () {
    line.textContent = "The run cannot be reached: it was ended, or this connection was.";
  };
})();
