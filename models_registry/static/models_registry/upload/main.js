// The upload page: files are dropped, sent, checked by the server, and become a model.

import { Row } from "./row.js";
import { Sender } from "./sender.js";
import { Server } from "./server.js";
import { suggestId } from "./words.js";

const POLL_MS = 1000;
const AT_ONCE = 2;

class UploadPage {
  constructor(root) {
    this.root = root;
    this.find = (name) => root.querySelector(`[data-${name}]`);
    this.form = this.find("wish");
    this.server = new Server(this.form.querySelector("[name=csrfmiddlewaretoken]").value);
    this.importId = root.dataset.import || null;
    this.files = new Map(); // upload id -> what the server said
    this.senders = new Map(); // key -> Sender
    this.rows = new Map(); // key -> Row
    this.isPolling = false;
    this.suggested = "";
    this.isStale = false; // something happened since the server was asked last
    this.#listen();
    if (this.importId) this.refresh();
  }

  #listen() {
    const drop = this.find("drop");
    const input = this.find("files");
    input.onchange = () => {
      this.add([...input.files]);
      input.value = "";
    };
    for (const kind of ["dragenter", "dragover"]) {
      drop.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.add("upload-over");
      });
    }
    for (const kind of ["dragleave", "drop"]) {
      drop.addEventListener(kind, () => drop.classList.remove("upload-over"));
    }
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
    this.form.onsubmit = (event) => {
      event.preventDefault();
      this.#wish();
    };
    this.form.elements.model.onchange = () => this.#fitForm();
    this.#fitForm();
    addEventListener("beforeunload", (event) => {
      if (this.#busy().length) event.preventDefault();
    });
  }

  /** Take files: those that were begun earlier go on where they stand. */
  async add(files) {
    if (!files.length) return;
    this.say("");
    try {
      await this.#ensureImport();
    } catch (error) {
      this.say(error.message);
      return;
    }
    for (const file of files) this.#take(file);
    this.#suggest();
    this.#startNext();
  }

  async #ensureImport() {
    if (this.importId) return;
    this.importId = (await this.server.createImport()).id;
    history.replaceState(null, "", `?import=${this.importId}`);
  }

  #take(file) {
    const earlier = [...this.files.values()].find(
      (one) => one.filename === file.name && one.bytes === file.size && one.status === "receiving",
    );
    const key = earlier?.id ?? `new-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
    if (this.senders.has(key)) return;
    const sender = new Sender({
      server: this.server,
      file,
      importId: this.importId,
      id: earlier?.id ?? null,
      onChange: () => this.#showSender(key),
    });
    this.senders.set(key, sender);
    this.#showSender(key);
  }

  #startNext() {
    const waiting = [...this.senders.entries()].filter(([, one]) => one.state === "waiting");
    const free = AT_ONCE - this.#busy().length;
    for (const [key] of waiting.slice(0, Math.max(0, free))) this.#run(key);
  }

  async #run(key) {
    const sender = this.senders.get(key);
    sender.state = "sending";
    await sender.run();
    this.#startNext();
    this.refresh();
  }

  #busy() {
    return [...this.senders.values()].filter((one) => ["hashing", "sending"].includes(one.state));
  }

  #showSender(key) {
    const sender = this.senders.get(key);
    if (!sender) return;
    const known = this.files.get(sender.id) ?? {
      filename: sender.file.name,
      bytes: sender.file.size,
      status: "receiving",
      received: 0,
    };
    this.#row(key).show(known, sender);
    if (sender.id && !this.isPolling) this.refresh();
  }

  /** Give the row of a file; one that this page began has it under the key of its sender. */
  #row(key) {
    if (!this.rows.has(key)) {
      const row = new Row(this.find("row"), {
        onPause: () => this.senders.get(key).pause(),
        onResume: () => this.#run(key),
        onRemove: () => this.#remove(key),
      });
      this.rows.set(key, row);
      this.find("list").append(row.element);
    }
    return this.rows.get(key);
  }

  async #remove(key) {
    const sender = this.senders.get(key);
    const id = sender ? sender.id : key;
    sender?.pause();
    this.senders.delete(key);
    this.rows.get(key)?.element.remove();
    this.rows.delete(key);
    this.files.delete(id);
    if (id) await this.server.removeUpload(id).catch(() => {});
    this.refresh();
  }

  /** Ask the server how things stand, and again while something may change. */
  async refresh() {
    this.isStale = true;
    if (!this.importId || this.isPolling) return;
    this.isPolling = true;
    try {
      while (this.isStale || this.#mayChange()) {
        this.isStale = false;
        this.#showImport(await this.server.readImport(this.importId));
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    } catch (error) {
      if (error.willPass) setTimeout(() => this.refresh(), 3 * POLL_MS);
      else this.say(error.message);
    } finally {
      this.isPolling = false;
    }
  }

  #mayChange() {
    const isWorking = ["waiting", "importing"].includes(this.status);
    const isChanging = [...this.files.values()].some(
      (one) => one.status === "checking" || (one.source && one.status === "receiving"),
    );
    return isWorking || isChanging || this.#busy().length > 0;
  }

  #showImport(found) {
    this.status = found.status;
    this.files = new Map(found.files.map((file) => [file.id, file]));
    for (const file of found.files) {
      const [key, sender] = this.#senderOf(file);
      this.#row(key).show(file, sender);
    }
    this.#suggest();
    const outcome = this.find("outcome");
    outcome.textContent = OUTCOMES[found.status]?.(found) ?? "";
    outcome.classList.toggle("upload-bad", found.status === "failed");
    this.find("done").hidden = found.status !== "done";
    this.find("list").classList.toggle("upload-settled", found.status === "done");
    this.form.hidden = ["importing", "done"].includes(found.status);
    this.find("drop").hidden = this.form.hidden;
  }

  /** The server may tell of an upload before it answers the sender that has just begun it. */
  #senderOf({ id, filename, bytes }) {
    const all = [...this.senders.entries()];
    const known = all.find(([, sender]) => sender.id === id);
    if (known || this.rows.has(id)) return known ?? [id, undefined];
    const isBeginning = ({ id: none, file }) => none === null && file.name === filename && file.size === bytes;
    return all.find(([, sender]) => isBeginning(sender)) ?? [id, undefined];
  }

  async #wish() {
    const fields = this.form.elements;
    const isOld = fields.model.value !== "";
    const wish = {
      model: isOld ? fields.model.selectedOptions[0].textContent : fields.slug.value,
      title: fields.title.value,
      new_version: isOld,
      deploy: fields.deploy.checked,
      ...(fields.kind.value ? { kind: fields.kind.value } : {}),
    };
    this.say("");
    try {
      await this.#ensureImport();
      this.#showImport(await this.server.wish(this.importId, wish));
      this.refresh();
    } catch (error) {
      this.say(error.message);
      if (error.param === "model" && !isOld) fields.slug.focus();
    }
  }

  /** An old model has its name and title already. */
  #fitForm() {
    const isNew = this.form.elements.model.value === "";
    for (const name of ["slug", "title", "kind"]) {
      this.form.elements[name].closest(".group").hidden = !isNew;
    }
  }

  #suggest() {
    const field = this.form.elements.slug;
    const weights = [...this.files.values()].find((one) => one.part === "weights");
    const name = weights?.filename ?? [...this.senders.values()].at(-1)?.file.name ?? "";
    // What somebody typed stays.
    if (!name || (field.value && field.value !== this.suggested)) return;
    field.value = this.suggested = suggestId(name);
  }

  say(words) {
    this.find("message").textContent = words;
    this.find("message").hidden = !words;
  }
}

const OUTCOMES = {
  waiting: () => "It is imported by itself once all files are here. Files that this page sends need it open until then.",
  importing: () => "The files are stored, and llama.cpp tries them in a process of its own.",
  done: (found) => (found.version ? `${found.model} v${found.version} is ready.` : `${found.model} has its adapters.`),
  failed: (found) => found.reason,
};

for (const root of document.querySelectorAll("[data-upload-page]")) new UploadPage(root);
