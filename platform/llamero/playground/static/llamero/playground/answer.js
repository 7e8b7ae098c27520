// One answer while it streams: turns the frames of its chat into what the message shows.

import { countTokens, formatRate, formatSeconds } from "./numbers.js";

const ERROR_TITLES = {
  context_length_exceeded: "Too long for this model",
  model_not_found: "No such model",
  no_ready_replica: "The model is not ready",
  queue_full: "Too busy",
  stream_detached: "The answer goes on elsewhere",
  run_not_found: "Connection lost",
  broker_unavailable: "The server is not reachable inside",
  engine_lost: "The answer broke off",
  deadline_exceeded: "Took too long",
};
const LOST_DETAIL = "The answer was cut off. Send it again once connected.";
const END_WORDS = { stop: "", length: "token limit reached", cancelled: "stopped" };

export class Answer {
  #view;
  #onEnd;
  #onProgress;
  #sentAt = performance.now();
  #firstAt = 0;
  #numDeltas = 0;
  #isResumed;

  // onProgress gets a line for the status bar; onEnd is told how it ended, once. What was sent
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
        return this.#view.setNote("Thinking…");
      case "delta":
        return this.#grow(frame.text);
      case "done":
        return this.#finish(frame);
      case "paused":
        return this.#view.setNote("Connection lost. The answer goes on once connected…");
      case "resumed":
        return this.#view.setNote("");
      case "error":
        return this.#fail(ERROR_TITLES[frame.error.code] ?? "That did not work", frame.error.message);
      case "lost":
        return this.#fail("Connection lost", LOST_DETAIL);
    }
  }

  #showPrefill({ processed, total }) {
    if (!this.#firstAt) this.#view.setNote(`Reading the prompt… ${processed} of ${countTokens(total)}`);
  }

  #grow(text) {
    const now = performance.now();
    if (!this.#firstAt) this.#firstAt = now;
    this.#numDeltas += 1;
    this.#view.append(text);
    const seconds = (now - this.#firstAt) / 1000;
    if (seconds > 0.3 && !this.#isResumed) this.#onProgress(`≈ ${formatRate((this.#numDeltas - 1) / seconds)}`);
  }

  #finish({ finish_reason: reason, usage, timings }) {
    const parts = [];
    if (timings.predicted_per_second > 0) parts.push(formatRate(timings.predicted_per_second));
    if (this.#firstAt && !this.#isResumed) parts.push(`first token ${formatSeconds(this.#firstAt - this.#sentAt)}`);
    parts.push(countTokens(usage.completion_tokens));
    const cached = usage.cached_tokens ? ` (${usage.cached_tokens} cached)` : "";
    if (usage.prompt_tokens) parts.push(`prompt ${usage.prompt_tokens}${cached}`);
    if (END_WORDS[reason]) parts.push(END_WORDS[reason]);
    this.#view.setStats(parts);
    this.#end(reason);
  }

  #fail(title, detail) {
    this.#view.showError(title, detail);
    this.#end("error");
  }

  #end(reason) {
    this.#view.setNote("");
    this.#view.setStreaming(false);
    this.#onEnd(reason);
  }
}

function describePlace({ position, wait_seconds: wait }) {
  if (position <= 1) return "Waiting for a slot…";
  const seconds = wait ? `, about ${formatSeconds(wait * 1000)}` : "";
  return `Waiting for a slot… ${position - 1} before this one${seconds}`;
}
