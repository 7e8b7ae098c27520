// Sends one file, piece by piece, from wherever it stands; survives cut lines and restarts.

import { hashFile } from "./hashing.js";

const FIRST_PIECE_BYTES = 1024 * 1024;
const MIN_PIECE_BYTES = 1024 * 1024;
const MAX_PIECE_BYTES = 32 * 1024 * 1024;
// A piece should take about so long: then a pause or a cut costs little, and so do round trips.
const PIECE_SECONDS = 2;
const PAUSES_MS = [500, 1000, 2000, 4000, 8000, 15000, 30000];

export class Sender {
  /** `id` is that of an upload that goes on; `onChange` hears of everything that can be seen. */
  constructor({ server, file, importId, id = null, onChange }) {
    Object.assign(this, { server, file, importId, id, onChange });
    this.state = "waiting"; // hashing, sending, paused, sent, failed
    this.sent = 0;
    this.hashed = 0;
    this.speed = 0;
    this.words = "";
    this.isLast = false;
    this.hash = null;
    this.abort = new AbortController();
  }

  /** Run to the end, or until a pause; what went wrong is shown, never thrown. */
  async run() {
    this.abort = new AbortController();
    try {
      if (this.id === null) await this.#begin();
      else this.sent = await this.server.offsetOf(this.id);
      await this.#send();
    } catch (error) {
      if (error.name === "AbortError") this.#become("paused");
      else this.#become("failed", error.message);
    }
  }

  pause() {
    this.abort.abort();
    if (this.state !== "sent") this.#become("paused");
  }

  /** Whether it waits for its own hash: before anything is sent, or with the last piece. */
  get isHashed() {
    return this.state === "hashing" || this.isLast;
  }

  get secondsLeft() {
    return this.speed ? (this.file.size - this.sent) / this.speed : null;
  }

  /** A file of a size that is here already is hashed first: perhaps nothing has to be sent. */
  async #begin() {
    if (await this.server.mayBeHere(this.file.size)) {
      this.#become("hashing");
      await this.#hash();
    }
    const known = this.hash ? await this.hash : "";
    const begun = await this.server.createUpload(this.file, this.importId, known);
    this.id = begun.id;
    this.sent = begun.offset;
  }

  #hash() {
    this.hash ??= hashFile(this.file, (done) => {
      this.hashed = done;
      this.onChange(this);
    });
    return this.hash;
  }

  async #send() {
    this.#become("sending");
    let length = FIRST_PIECE_BYTES;
    let failures = 0;
    while (this.sent < this.file.size) {
      this.abort.signal.throwIfAborted();
      const began = performance.now();
      const before = this.sent;
      try {
        this.sent = await this.#sendPiece(length);
        failures = 0;
        const seconds = (performance.now() - began) / 1000;
        this.#measure(this.sent - before, seconds);
        const fitting = (length * PIECE_SECONDS) / Math.max(seconds, 0.05);
        length = Math.min(Math.max(fitting, MIN_PIECE_BYTES), MAX_PIECE_BYTES, length * 4);
      } catch (error) {
        if (!error.willPass) throw error;
        await this.#recover(error, failures++);
      }
    }
    this.#become("sent");
  }

  /** The first piece goes ahead of the hash, so that a file that is no model is refused at once. */
  async #sendPiece(length) {
    const end = Math.min(this.sent + Math.round(length), this.file.size);
    const isLast = end === this.file.size;
    if (this.sent > 0) this.#hash().catch(() => {});
    const sha256 = isLast ? await this.#hashWithLast() : "";
    this.abort.signal.throwIfAborted();
    return this.server.sendPiece(this.id, this.sent, this.file.slice(this.sent, end), {
      sha256,
      signal: this.abort.signal,
      onProgress: (reached) => {
        this.sent = Math.min(reached, end);
        this.onChange(this);
      },
    });
  }

  /** The hash goes with the last piece, which waits for it; pieces are sent faster than hashed. */
  async #hashWithLast() {
    this.isLast = this.sent > 0;
    this.#become("sending");
    try {
      return await this.#hash();
    } finally {
      this.isLast = false;
    }
  }

  /** Wait a moment, and ask where the upload stands: an answer may have been lost. */
  async #recover(error, failures) {
    const pause = PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)];
    this.#become("sending", `${error.message} Trying again.`);
    await sleep(pause, this.abort.signal);
    try {
      this.sent = await this.server.offsetOf(this.id);
      this.#become("sending");
    } catch (again) {
      if (!again.willPass) throw again;
    }
  }

  #measure(bytes, seconds) {
    const now = bytes / Math.max(seconds, 0.001);
    this.speed = this.speed ? 0.7 * this.speed + 0.3 * now : now;
  }

  #become(state, words = "") {
    this.state = state;
    this.words = words;
    this.onChange(this);
  }
}

function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("paused", "AbortError"));
    }, { once: true });
  });
}
