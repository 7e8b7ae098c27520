// The settings form: read as request fields, kept in this browser, checked before a chat starts.

const STORAGE_KEY = "llamero.playground";
const MODELS = new Set(["model", "second-model"]);

export class Settings {
  #form;
  #reveal;

  // reveal brings the form into view, so that a bad value in it can be shown.
  constructor(form, reveal) {
    this.#form = form;
    this.#reveal = reveal;
    for (const range of form.querySelectorAll("input[type=range]")) this.#pair(range);
    form.addEventListener("input", () => this.#save());
    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelector("#reset").addEventListener("click", () => this.#reset());
    form.elements.tools.addEventListener("input", () => this.#checkTools());
    this.#load();
  }

  // The texts of all fields by name, as presets keep them.
  get values() {
    return Object.fromEntries(this.#stored().map(({ name, value }) => [name, value]));
  }

  set values(values) {
    for (const element of this.#stored()) {
      const value = values[element.name];
      this.#set(element, typeof value === "string" ? value : (element.dataset.default ?? ""));
    }
    this.#save();
  }

  // Begins with what a model's deployment has; what somebody chose stays.
  propose(defaults) {
    for (const input of this.#form.querySelectorAll("input.number")) {
      const before = input.dataset.default;
      input.dataset.usual ??= before;
      const next = String(defaults[input.name] ?? input.dataset.usual);
      if (next === before) continue;
      input.dataset.default = next;
      if (input.value !== before) continue;
      this.#set(input, next);
      // A deployment's default need not be on the form's grid.
      if (input.validity.stepMismatch) input.step = "any";
    }
  }

  // Shows the first bad value, if any; true if there is none.
  check() {
    if (this.#form.checkValidity()) return true;
    this.#reveal();
    for (const details of this.#form.querySelectorAll("details:has(:invalid)")) details.open = true;
    return this.#form.reportValidity();
  }

  // Gives the fields of a request, system prompt and tools included.
  read() {
    const fields = {};
    for (const input of this.#form.querySelectorAll("input.number")) {
      if (input.value !== "") fields[input.name] = input.valueAsNumber;
    }
    const stop = this.#form.elements.stop.value.split("\n").filter((line) => line !== "");
    if (stop.length) fields.stop = stop;
    const system = this.#form.elements.system.value.trim();
    if (system) fields.system = system;
    const tools = this.#form.elements.tools.value.trim();
    if (tools) fields.tools = JSON.parse(tools);
    return fields;
  }

  // Shows what a request was asked with.
  show({ system = "", tools, stop = [], ...numbers }) {
    const texts = Object.entries(numbers).map(([name, value]) => [name, String(value)]);
    const values = Object.fromEntries(texts);
    for (const input of this.#form.querySelectorAll("input.number")) values[input.name] ??= "";
    const stopText = [stop].flat().join("\n");
    this.values = { ...values, system, tools: tools ? JSON.stringify(tools, null, 2) : "", stop: stopText };
  }

  #checkTools() {
    const field = this.#form.elements.tools;
    let complaint = "";
    try {
      if (field.value.trim() && !Array.isArray(JSON.parse(field.value))) complaint = "Tools must be a JSON list.";
    } catch (error) {
      complaint = `This is no JSON: ${error.message}`;
    }
    field.setCustomValidity(complaint);
  }

  #pair(range) {
    const number = this.#form.elements[range.dataset.for];
    const fill = () => {
      const share = (range.value - range.min) / (range.max - range.min);
      range.style.setProperty("--share", `${share * 100}%`);
    };
    range.addEventListener("input", () => {
      number.value = range.value;
      fill();
    });
    number.addEventListener("input", () => {
      range.value = number.value;
      fill();
    });
    fill();
  }

  #stored() {
    return [...this.#form.elements].filter((element) => element.name && !MODELS.has(element.name));
  }

  #save() {
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(this.values));
    } catch {
      // Storage may be full or blocked: the settings then last as long as the page.
    }
  }

  #load() {
    let values = {};
    try {
      values = JSON.parse(localStorage.getItem(STORAGE_KEY)) ?? {};
    } catch {
      // Unreadable settings are no settings.
    }
    for (const element of this.#stored()) {
      if (typeof values[element.name] === "string") this.#set(element, values[element.name]);
    }
  }

  #reset() {
    this.values = {};
  }

  #set(element, value) {
    element.value = value;
    element.dispatchEvent(new Event("input"));
  }
}
