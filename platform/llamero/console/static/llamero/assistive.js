// What the admin's theme leaves out for people without a mouse or without a screen. It opens filters,
// the navigation and the user's menu by clicks on elements that no keyboard reaches, draws pictures
// as words of a font, and has boxes and hints without a name.
"use strict";

(() => {
  const NATIVE = "a[href], button, input, select, textarea, label, summary";
  const ICON_NAMES = {
    add: "Add",
    arrow_back: "Go back",
    close: "Close",
    dock_to_right: "Show or hide the navigation",
    more_horiz: "More",
    more_vert: "More",
    search: "Search",
  };

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

  // A picture is read as the word that draws it: what it is on needs a name instead.
  function hideIcons() {
    for (const icon of document.querySelectorAll(".material-symbols-outlined:not([aria-hidden], [role])")) {
      const control = icon.closest("a, button, [role=button]");
      const word = icon.textContent.trim();
      if (control && control.textContent.trim() === word && !control.title && !control.ariaLabel) {
        if (!ICON_NAMES[word]) continue;
        control.setAttribute("aria-label", ICON_NAMES[word]);
      }
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
      for (const part of [box, ...box.querySelectorAll("[role=textbox], [role=searchbox]")]) {
        part.setAttribute("aria-labelledby", part === box && part.id ? `${label.id} ${part.id}` : label.id);
      }
    }
    for (const field of document.querySelectorAll(".select2-dropdown [role=searchbox]:not([aria-label])")) {
      field.setAttribute("aria-label", "Search");
    }
  }

  // A hint that is drawn is a picture; a name without a role is none.
  function nameHints() {
    for (const hint of document.querySelectorAll(".help-tooltip[aria-label]:not([role])")) hint.setAttribute("role", "img");
  }

  // Fields in the cells of a table are named by its head, for the eye alone.
  function nameCells() {
    for (const field of document.querySelectorAll("td[data-label] :is(input:not([type=hidden]), select, textarea)")) {
      if (!field.labels?.length && !field.ariaLabel) field.setAttribute("aria-label", field.closest("td").dataset.label);
    }
  }

  function assist() {
    makeButtons();
    hideIcons();
    nameBoxes();
    nameHints();
    nameCells();
  }

  document.addEventListener("keydown", pressButton);
  document.addEventListener("DOMContentLoaded", () => {
    assist();
    new MutationObserver(assist).observe(document.body, { childList: true, subtree: true });
  });
})();
