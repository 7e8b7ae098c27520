// Keeps the panels of a deployment's form in step with the values typed into it: what memory it
// takes, and how requests are split.
"use strict";

(() => {
  const DELAY_MS = 300;

  function follow(panel) {
    const form = panel.closest("form");
    if (!form) return;
    let timer = 0;
    let latest = 0;

    async function refresh() {
      const turn = ++latest;
      const values = new FormData(form);
      values.set("deployment", panel.dataset.deployment);
      const answer = await fetch(panel.dataset.panelUrl, { method: "POST", body: values });
      // An answer that was overtaken by another, or went wrong, leaves the panel as it is.
      if (answer.ok && turn === latest) panel.innerHTML = await answer.text();
    }

    function refreshSoon() {
      clearTimeout(timer);
      timer = setTimeout(() => refresh().catch(() => {}), DELAY_MS);
    }

    form.addEventListener("input", refreshSoon);
    form.addEventListener("change", refreshSoon);
    refreshSoon();
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-panel-url]").forEach(follow);
  });
})();
