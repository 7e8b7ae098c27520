// Which models can be chosen, and how they are doing.

import { ask } from "./server.js";

const POLL_MS = 4000;
const STATE_WORDS = {
  ready: "Ready",
  sleeping: "Sleeping",
  loading: "Loading",
  pending: "Starting",
  stopped: "Stopped",
  failed: "Failed",
};

// The states in which a model answers, the quickest first.
const ANSWERING = ["ready", "sleeping", "loading", "pending"];

// Asks every few seconds, and tells every picker.
export class Models {
  #pickers;

  constructor(pickers) {
    this.#pickers = pickers;
    this.#poll();
  }

  async #poll() {
    if (!document.hidden) await this.#refresh();
    setTimeout(() => this.#poll(), POLL_MS);
  }

  async #refresh() {
    try {
      const { models } = await ask("GET", "models");
      for (const picker of this.#pickers) picker.offer(models);
    } catch {
      // The next round may do better.
    }
  }
}

export class ModelPicker {
  #select;
  #fits;
  #onChange;
  #models = [];
  #isKnown = false;
  #parts;
  #key;
  #wanted;

  // name is the id of the select; fits tells which models to offer.
  constructor(name, fits, onChange) {
    this.#select = document.getElementById(name);
    this.#fits = fits;
    this.#onChange = onChange;
    this.#key = `llamero.playground.${name}`;
    this.#wanted = this.#recall();
    this.#parts = Object.fromEntries(
      ["state", "state-text", "facts", "reason", "none"].map((part) => [part, document.getElementById(`${name}-${part}`)]),
    );
    this.#select.addEventListener("change", () => {
      this.#remember(this.#select.value);
      this.#show();
    });
  }

  get chosen() {
    return this.#models.find((model) => model.id === this.#select.value) ?? null;
  }

  choose(id) {
    this.#wanted = id;
    if (!this.#models.some((model) => model.id === id)) return;
    this.#select.value = id;
    this.#show();
  }

  // Chooses another model than the one that is chosen elsewhere, if another could answer.
  differFrom(other) {
    if (!other || this.chosen?.id !== other.id) return;
    const answers = (state) => this.#models.find((model) => model.state === state && model.id !== other.id);
    const found = ANSWERING.map(answers).find(Boolean);
    if (found) this.choose(found.id);
  }

  offer(models) {
    this.#models = models.filter(this.#fits);
    this.#isKnown = true;
    this.#fill();
    this.#show();
  }

  #fill() {
    const wanted = this.#select.value || this.#wanted;
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
    const isNoneDeployed = this.#isKnown && !model;
    this.#parts["state-text"].textContent = model ? (STATE_WORDS[model.state] ?? model.state) : isNoneDeployed ? "None is deployed" : "…";
    // The second model of a comparison leaves this to the first.
    if (this.#parts.none) this.#parts.none.hidden = !isNoneDeployed;
    this.#select.disabled = isNoneDeployed;
    this.#parts.facts.textContent = model ? model.facts.join(" · ") : "";
    this.#parts.reason.textContent = model?.reason ?? "";
    this.#parts.reason.hidden = !model?.reason;
    this.#onChange(model);
  }

  #remember(id) {
    try {
      localStorage.setItem(this.#key, id);
    } catch {
      // Storage may be blocked.
    }
  }

  #recall() {
    try {
      return localStorage.getItem(this.#key);
    } catch {
      return null;
    }
  }
}
