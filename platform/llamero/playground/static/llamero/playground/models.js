// Which models can be chosen, and how they are doing.

const POLL_MS = 4000;
const STORAGE_KEY = "llamero.playground.model";
const STATE_WORDS = {
  ready: "Ready",
  sleeping: "Sleeping",
  loading: "Loading",
  pending: "Starting",
  stopped: "Stopped",
  failed: "Failed",
};

export class ModelPicker {
  #select;
  #url;
  #onChange;
  #models = [];
  #parts;

  constructor(form, url, onChange) {
    this.#select = form.querySelector("#model");
    this.#url = url;
    this.#onChange = onChange;
    this.#parts = Object.fromEntries(
      ["state", "state-text", "facts", "reason"].map((name) => [name, form.querySelector(`#model-${name}`)]),
    );
    this.#select.addEventListener("change", () => {
      this.#remember(this.#select.value);
      this.#show();
    });
    this.#poll();
  }

  get chosen() {
    return this.#models.find((model) => model.id === this.#select.value) ?? null;
  }

  async #poll() {
    if (!document.hidden) await this.#refresh();
    setTimeout(() => this.#poll(), POLL_MS);
  }

  async #refresh() {
    try {
      const response = await fetch(this.#url, { redirect: "error", headers: { Accept: "application/json" } });
      if (!response.ok) return;
      const { models } = await response.json();
      this.#models = models;
    } catch {
      return;
    }
    this.#fill();
    this.#show();
  }

  #fill() {
    const wanted = this.#select.value || this.#recall();
    const options = this.#models.map(({ id, state }) => {
      const suffix = state === "ready" ? "" : ` (${STATE_WORDS[state]?.toLowerCase() ?? state})`;
      return new Option(id + suffix, id);
    });
    const shown = [...this.#select.options].map((option) => option.text).join("\n");
    if (options.map((option) => option.text).join("\n") === shown) return;
    this.#select.replaceChildren(...options);
    const ready = this.#models.find((model) => model.state === "ready");
    const known = this.#models.some((model) => model.id === wanted);
    this.#select.value = known ? wanted : (ready?.id ?? this.#models[0]?.id ?? "");
  }

  #show() {
    const model = this.chosen;
    this.#parts.state.dataset.state = model?.state ?? "unknown";
    this.#parts["state-text"].textContent = model ? (STATE_WORDS[model.state] ?? model.state) : "No chat model";
    this.#parts.facts.textContent = model ? model.facts.join(" · ") : "";
    this.#parts.reason.textContent = model?.reason ?? "";
    this.#parts.reason.hidden = !model?.reason;
    this.#onChange(model);
  }

  #remember(id) {
    try {
      localStorage.setItem(STORAGE_KEY, id);
    } catch {
      // Storage may be blocked.
    }
  }

  #recall() {
    try {
      return localStorage.getItem(STORAGE_KEY);
    } catch {
      return null;
    }
  }
}
