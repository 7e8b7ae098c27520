// What the pages of embeddings and reranking have in common: a form, a model, and its answer.

import { showCode } from "./dialogs.js";
import { ModelPicker, Models } from "./models.js";
import { ask } from "./server.js";

const MAX_TEXTS = 100;
const find = (id) => document.getElementById(id);

export class VectorPage {
  #picker;
  #route;
  #readBody;
  #show;
  #writeCode;
  #isBusy = false;
  #lastBody = null;

  // readBody gives what to ask beside the model, from the texts; show gets body and answer.
  constructor({ route, fits, fewest, readBody, show, writeCode }) {
    this.#route = route;
    this.#readBody = readBody;
    this.#show = show;
    this.#writeCode = writeCode;
    this.#picker = new ModelPicker("model", fits, () => this.#update());
    new Models([this.#picker]);
    find("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#run();
    });
    find("texts").addEventListener("input", () => checkTexts(fewest));
    find("code").addEventListener("click", () => showCode(this.#writeCode(this.#lastBody)));
  }

  async #run() {
    if (this.#isBusy) return;
    const body = { model: this.#picker.chosen.id, ...this.#readBody(readTexts()) };
    this.#isBusy = true;
    this.#update();
    find("banner").hidden = true;
    try {
      this.#show(body, await ask("POST", this.#route, body), find("results"));
      this.#lastBody = body;
    } catch (error) {
      find("banner").textContent = error.message;
      find("banner").hidden = false;
    }
    this.#isBusy = false;
    this.#update();
  }

  #update() {
    find("go").disabled = this.#isBusy || !this.#picker.chosen;
    find("code").disabled = !this.#lastBody;
  }
}

function readTexts() {
  return find("texts").value.split("\n").map((line) => line.trim()).filter(Boolean);
}

function checkTexts(fewest) {
  const { length } = readTexts();
  const isFine = length >= fewest && length <= MAX_TEXTS;
  find("texts").setCustomValidity(isFine ? "" : `Enter ${fewest} to ${MAX_TEXTS} lines; there are ${length}.`);
}
