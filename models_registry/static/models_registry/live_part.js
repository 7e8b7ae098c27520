// Parts of a page that come by themselves: <div data-part-url="ADDRESS"> is fetched once,
// <div data-live-url="ADDRESS"> again and again.
"use strict";

(() => {
  const PERIOD_MS = 2000;

  function follow(part) {
    let last = "";

    async function renew() {
      if (document.hidden) return;
      const answer = await fetch(part.dataset.liveUrl, { headers: { accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      const text = await answer.text();
      if (text === last) return;
      last = text;
      // What somebody opened or is reading stays as it is.
      const isOpen = part.querySelector("details")?.open;
      const frame = part.contains(document.activeElement) ? document.activeElement : null;
      if (frame && frame !== document.body) return;
      part.innerHTML = text;
      const details = part.querySelector("details");
      if (details && isOpen !== undefined) details.open = isOpen;
    }

    const round = () => renew().catch(() => {}).finally(() => setTimeout(round, PERIOD_MS));
    round();
  }

  async function fill(part) {
    const answer = await fetch(part.dataset.partUrl).catch(() => null);
    if (answer?.ok && !answer.redirected) part.innerHTML = await answer.text();
    else part.textContent = "This could not be loaded: reload the page.";
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-part-url]").forEach(fill);
    document.querySelectorAll("[data-live-url]").forEach(follow);
  });
})();
