// The settings form: read as request fields, kept in this browser, checked before a chat starts.

const STORAGE_KEY = "llamero.playground";

export class Settings {
  #form;
  #reveal;

  // reveal brings the form into view, so that a bad number in it can be shown.
  constructor(form, reveal) {
    this.#form = form;
    this.#reveal = reveal;
    for (const range of form.querySelectorAll("input[type=range]")) this.#pair(range);
    form.addEventListener("input", () => this.#save());
    form.addEventListener("submit", (event) => event.preventDefault());
    form.querySelector("#reset").addEventListener("click", () => this.#reset());
    this.#load();
  }

  get system() {
    return this.#form.elements.system.value.trim();
  }

  // Shows the first bad number, if any; true if there is none.
  check() {
    if (this.#form.checkValidity()) return true;
    this.#reveal();
    return this.#form.reportValidity();
  }

  readSampling() {
    const fields = {};
    for (const input of this.#form.querySelectorAll("input.number")) {
      if (input.value !== "") fields[input.name] = input.valueAsNumber;
    }
    const stop = this.#form.elements.stop.value.split("\n").filter((line) => line !== "");
    if (stop.length) fields.stop = stop;
    return fields;
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
    return [...this.#form.elements].filter((element) => element.name && element.name !== "model");
  }

  #save() {
    const values = Object.fromEntries(this.#stored().map(({ name, value }) => [name, value]));
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(values));
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
    for (const element of this.#stored()) this.#set(element, element.dataset.default ?? "");
    this.#save();
  }

  #set(element, value) {
    element.value = value;
    element.dispatchEvent(new Event("input"));
  }
}
