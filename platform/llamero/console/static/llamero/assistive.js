// What the admin's theme leaves out for people without a mouse or without a screen. It opens filters,
// the navigation and the user's menu by clicks on elements that no keyboard reaches, draws pictures
// as words of a font, and has boxes and hints without a name.
"use strict";

(() => {
  const NATIVE = "a[href], button, input, select, textarea, label, summary";
  const ICON_NAMES = { dock_to_right: "Show or hide the navigation", close: "Close" };

  // Clicks that are listened for on what is no button.
  function makeButtons() {
    for (const element of document.querySelectorAll("[x-on\\:click]:not([tabindex])")) {
      if (element.matches(NATIVE) || element.querySelector(NATIVE)) continue;
      element.tabIndex = 0;
      element.setAttribute("role", "button");
      const name = ICON_NAMES[element.textContent.trim()];
      if (name) element.setAttribute("aria-label", name);
    }
  }

  function pressButton(event) {
    const { target, key } = event;
    if (key !== "Enter" && key !== " ") return;
    if (!(target instanceof Element) || !target.matches("[x-on\\:click][role=button]")) return;
    event.preventDefault();
    target.click();
  }

  // "arrow_back" is read as the name of a link whose title says "Go back".
  function hideIcons() {
    for (const icon of document.querySelectorAll(".material-symbols-outlined:not([aria-hidden], [role])")) {
      icon.setAttribute("aria-hidden", "true");
    }
  }

  // Their library names boxes that search by what is chosen, which is nothing at first.
  function nameBoxes() {
    for (const select of document.querySelectorAll("select.select2-hidden-accessible")) {
      const label = select.labels?.[0];
      const box = select.nextElementSibling?.querySelector(".select2-selection");
      if (!label || !box || box.dataset.isNamed) continue;
      box.dataset.isNamed = "yes";
      label.id ||= `${select.id}-label`;
      for (const part of [box, ...box.querySelectorAll("[role=textbox]")]) {
        part.setAttribute("aria-labelledby", part === box && part.id ? `${label.id} ${part.id}` : label.id);
      }
    }
  }

  // A hint that is drawn is a picture; a name without a role is none.
  function nameHints() {
    for (const hint of document.querySelectorAll(".help-tooltip[aria-label]:not([role])")) hint.setAttribute("role", "img");
  }

  function assist() {
    makeButtons();
    hideIcons();
    nameBoxes();
    nameHints();
  }

  document.addEventListener("keydown", pressButton);
  document.addEventListener("DOMContentLoaded", () => {
    assist();
    new MutationObserver(assist).observe(document.body, { childList: true, subtree: true });
  });
})();
