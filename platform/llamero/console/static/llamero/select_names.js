// Names the boxes that search as one types, for screen readers: their library names them by what
// is chosen, which is nothing at first.
"use strict";

(() => {
  function nameBoxes() {
    for (const select of document.querySelectorAll("select.select2-hidden-accessible")) {
      const label = select.labels?.[0]?.textContent.trim().replace(/\s*\*$/, "");
      const box = select.nextElementSibling?.querySelector(".select2-selection");
      if (!label || !box) continue;
      for (const part of [box, ...box.querySelectorAll("[role=textbox]")]) {
        part.setAttribute("aria-label", label);
      }
      // It names the chosen text, which would win over the label.
      if (box.getAttribute("role") === "combobox") box.removeAttribute("aria-labelledby");
    }
  }

  addEventListener("load", nameBoxes);
})();
