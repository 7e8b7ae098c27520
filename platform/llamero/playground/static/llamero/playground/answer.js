// One answer while it streams: turns the frames of its chat into what the message shows.

import { countTokens, describeOutcome, formatRate, formatSeconds } from "./numbers.js";

const ERROR_TITLES = {
  context_length_exceeded: "Too long for this model",
  frame_too_large: "Too long to be sent",
  model_not_found: "No such model",
  no_ready_replica: "The model is not ready",
  queue_full: "Too busy",
  rate_limit_exceeded: "Too much at once",
  stream_detached: "The answer goes on elsewhere",
  run_not_found: "Connection lost",
  never_begun: "The answer was never begun",
  broker_unavailable: "The server is not reachable inside",
  engine_lost: "The answer broke off",
  deadline_exceeded: "Took too long",
};

export function titleOf(code) {
  return ERROR_TITLES[code] ?? "That did not work";
}

export class Answer {
  #view;
  #onEnd;
  #onProgress;
  #sentAt = performance.now();
  #firstAt = 0;
  #numDeltas = 0;
  #isResumed;

  // onProgress gets a line for the status bar; onEnd is given the last frame, once. What was sent
  // before this page was loaded has no first token to measure.
  constructor(view, { onProgress, onEnd, isResumed = false }) {
    this.#view = view;
    this.#isResumed = isResumed;
    this.#onProgress = onProgress;
    this.#onEnd = onEnd;
    view.setStreaming(true);
    view.setNote(isResumed ? "Coming back…" : "Sending…");
  }

  handle(frame) {
    switch (frame.type) {
      case "loading":
        return this.#view.setNote(`Loading the model… ${Math.round(100 * frame.progress)} %`);
      case "queued":
        return this.#view.setNote(describePlace(frame));
      case "started":
        return this.#view.setNote("Reading the prompt…");
      case "progress":
        return this.#showPrefill(frame);
      case "reasoning":
        return this.#grow(() => this.#view.addReasoning(frame.text));
      case "delta":
        return this.#grow(() => this.#view.append(frame.text));
      case "call":
        return this.#grow(() => this.#view.addCall({ id: frame.call_id, name: frame.name, arguments: "" }));
      case "arguments":
        return this.#grow(() => this.#view.growCall(frame.index, frame.text));
      case "paused":
        return this.#view.setNote("Connection lost. The answer goes on once connected…");
      case "resumed":
        return this.#view.setNote("");
      case "done":
        return this.#finish(frame);
      case "error":
        this.#view.showError(titleOf(frame.error.code), frame.error.message);
        return this.#end(frame);
      case "lost":
        this.#view.showError("Connection lost", "The answer was cut off. Send it again once connected.");
        return this.#end(frame);
    }
  }

  #showPrefill({ processed, total }) {
    if (!this.#firstAt) this.#view.setNote(`Reading the prompt… ${processed} of ${countTokens(total)}`);
  }

  #grow(show) {
    const now = performance.now();
    if (!this.#firstAt) this.#firstAt = now;
    this.#numDeltas += 1;
    show();
    const seconds = (now - this.#firstAt) / 1000;
    if (seconds > 0.3 && !this.#isResumed) this.#onProgress(`≈ ${formatRate((this.#numDeltas - 1) / seconds)}`);
  }

  #finish(frame) {
    const waited = this.#firstAt && !this.#isResumed ? this.#firstAt - this.#sentAt : 0;
    this.#view.setStats(describeOutcome(frame, waited));
    this.#end(frame);
  }

  #end(frame) {
    this.#view.setNote("");
    this.#view.setStreaming(false);
    this.#onEnd(frame);
  }
}

function describePlace({ position, wait_seconds: wait }) {
  if (position <= 1) return "Waiting for a slot…";
  const seconds = wait ? `, about ${formatSeconds(wait * 1000)}` : "";
  return `Waiting for a slot… ${position - 1} before this one${seconds}`;
}
