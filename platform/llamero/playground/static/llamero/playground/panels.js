// History and settings: columns where there is room, else dialogs.

const find = (id) => document.getElementById(id);

export class Panels {
  #drawers = [
    new Drawer({ content: "settings", panel: "panel", opener: "open-settings", closer: "close-settings", dialog: "drawer", width: "62rem" }),
    new Drawer({ content: "history", panel: "history-panel", opener: "open-history", closer: "close-history", dialog: "history-drawer", width: "80rem" }),
  ];

  showSettings() {
    this.#drawers[0].show();
  }

  close() {
    for (const drawer of this.#drawers) drawer.close();
  }
}

class Drawer {
  #wide;
  #dialog;

  constructor({ content, panel, opener, closer, dialog, width }) {
    this.#wide = window.matchMedia(`(min-width: ${width})`);
    this.#dialog = find(dialog);
    const place = () => {
      this.close();
      (this.#wide.matches ? find(panel) : this.#dialog).append(find(content));
    };
    find(opener).addEventListener("click", () => this.show());
    find(closer).addEventListener("click", () => this.close());
    this.#dialog.addEventListener("click", (event) => {
      if (event.target === this.#dialog) this.close();
    });
    this.#wide.addEventListener("change", place);
    place();
  }

  show() {
    if (!this.#wide.matches && !this.#dialog.open) this.#dialog.showModal();
  }

  close() {
    if (this.#dialog.open) this.#dialog.close();
  }
}
