// Settings under names: the user's own, kept on the server.

import { askText, confirm } from "./dialogs.js";
import { ask } from "./server.js";

export class Presets {
  #select;
  #remove;
  #settings;
  #complain;
  #presets = [];

  constructor(form, settings, complain) {
    this.#select = form.querySelector("#preset");
    this.#remove = form.querySelector("#delete-preset");
    this.#settings = settings;
    this.#complain = complain;
    this.#select.addEventListener("change", () => this.#apply());
    this.#remove.addEventListener("click", () => this.#delete());
    form.querySelector("#save-preset").addEventListener("click", () => this.#save());
    this.#read();
  }

  get #chosen() {
    return this.#presets.find(({ id }) => String(id) === this.#select.value);
  }

  async #read(chosen = "") {
    try {
      this.#presets = (await ask("GET", "presets")).presets;
    } catch (error) {
      return this.#complain(error);
    }
    const options = this.#presets.map(({ id, name }) => new Option(name, id));
    const lead = new Option(options.length ? "Choose a preset…" : "No presets yet", "");
    this.#select.replaceChildren(lead, ...options);
    this.#select.value = chosen;
    this.#select.disabled = !options.length;
    this.#remove.disabled = !this.#chosen;
  }

  #apply() {
    const { settings } = this.#chosen ?? {};
    if (settings) this.#settings.values = settings;
    this.#remove.disabled = !settings;
  }

  async #save() {
    if (!this.#settings.check()) return;
    const value = this.#chosen?.name ?? "";
    const name = await askText({ title: "Save settings and system prompt", label: "Name of the preset", value, action: "Save" });
    if (!name) return;
    try {
      const { id } = await ask("POST", "presets", { name, settings: this.#settings.values });
      await this.#read(String(id));
    } catch (error) {
      this.#complain(error);
    }
  }

  async #delete() {
    const { id, name } = this.#chosen;
    if (!(await confirm({ title: "Delete preset?", text: `“${name}” will be gone.`, action: "Delete" }))) return;
    try {
      await ask("DELETE", `presets/${id}`);
    } catch (error) {
      if (error.status !== 404) return this.#complain(error);
    }
    await this.#read();
  }
}
