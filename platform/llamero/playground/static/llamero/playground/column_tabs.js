// On a narrow page one column of a comparison is seen at a time: tabs name both, and go to either.

const LETTERS = ["A", "B"];

export class ColumnTabs {
  #tabs;

  constructor(root, columns) {
    this.#tabs = [...root.querySelectorAll("button")];
    this.#tabs.forEach((tab, index) => {
      tab.addEventListener("click", () => columns[index].scrollIntoView({ block: "nearest", inline: "start" }));
    });
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) this.#mark(columns.indexOf(target));
    }, { root: columns[0].parentElement, threshold: 0.6 });
    for (const column of columns) seen.observe(column);
    this.#mark(0);
  }

  // Names the tabs after the models of the columns.
  name(ids) {
    this.#tabs.forEach((tab, index) => (tab.textContent = `${LETTERS[index]} · ${ids[index] ?? "…"}`));
  }

  #mark(chosen) {
    this.#tabs.forEach((tab, index) => tab.setAttribute("aria-pressed", String(index === chosen)));
  }
}
