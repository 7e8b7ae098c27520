// Takes over the theme chosen in the admin before the page is painted (so not a module).
"use strict";
(function () {
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

  function readChoice() {
    try {
      return JSON.parse(localStorage.getItem("adminTheme")) || "auto";
    } catch {
      return "auto";
    }
  }

  function apply() {
    const choice = readChoice();
    const isDark = choice === "dark" || (choice === "auto" && prefersDark.matches);
    document.documentElement.classList.toggle("dark", isDark);
  }

  function toggle() {
    const isDark = document.documentElement.classList.contains("dark");
    try {
      localStorage.setItem("adminTheme", JSON.stringify(isDark ? "light" : "dark"));
    } catch {
      // Storage may be blocked: the choice then lasts as long as the page.
    }
    document.documentElement.classList.toggle("dark", !isDark);
  }

  apply();
  prefersDark.addEventListener("change", apply);
  window.addEventListener("storage", apply);
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("[data-toggle-theme]")) toggle();
  });
})();
