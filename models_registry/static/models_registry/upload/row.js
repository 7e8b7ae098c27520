// One file on the page: its name, how far it is, and what can be done with it.

import { PARTS, sizeInWords, timeInWords } from "./words.js";

export class Row {
  constructor(template, { onPause, onResume, onRemove }) {
    this.element = template.content.firstElementChild.cloneNode(true);
    this.parts = Object.fromEntries(
      [...this.element.querySelectorAll("[data-part]")].map((one) => [one.dataset.part, one]),
    );
    this.parts.pause.onclick = () => (this.parts.pause.dataset.does === "resume" ? onResume() : onPause());
    this.parts.remove.onclick = onRemove;
  }

  /** Show a file: what the server said of it, and its sender, if this page has it. */
  show(file, sender) {
    const { name, kind, progress, words, pause, remove } = this.parts;
    const size = file.bytes ?? 0;
    const received = sender ? sender.sent : file.received;
    const isHashed = sender?.isHashed ?? false;
    const isEnded = ["complete", "refused"].includes(file.status);
    name.textContent = file.filename || "…";
    kind.textContent = describePart(file);
    kind.hidden = !kind.textContent;
    progress.max = size || 1;
    progress.value = isEnded && file.status === "complete" ? progress.max : isHashed ? sender.hashed : received;
    progress.setAttribute("aria-label", `${file.filename}, ${isHashed ? "compared" : "sent"}`);
    progress.classList.toggle("upload-hashing", isHashed || file.status === "checking");
    words.textContent = describe(file, sender, received);
    words.classList.toggle("upload-bad", file.status === "refused" || sender?.state === "failed");
    const canGoOn = sender && ["paused", "failed"].includes(sender.state) && file.status === "receiving";
    const canPause = sender && ["waiting", "hashing", "sending"].includes(sender.state);
    pause.hidden = !(canGoOn || canPause);
    pause.dataset.does = canGoOn ? "resume" : "pause";
    pause.textContent = canGoOn ? "Resume" : "Pause";
    pause.setAttribute("aria-label", `${pause.textContent} ${file.filename}`);
    remove.setAttribute("aria-label", `Remove ${file.filename}`);
    this.element.dataset.status = file.status;
  }
}

function describePart(file) {
  if (!file.part) return "";
  const shard = file.num_shards > 1 ? ` ${file.shard} of ${file.num_shards}` : "";
  return `${PARTS[file.part]}${shard} · ${file.architecture}`;
}

function describe(file, sender, received) {
  const size = sizeInWords(file.bytes ?? 0);
  if (file.status === "refused") return `Refused: ${file.reason}`;
  if (file.status === "complete") return file.was_here ? `${size}, was here already` : `${size}, checked`;
  if (file.status === "checking") return `${size}, being hashed and inspected`;
  if (sender) return describeSender(sender, received, size);
  if (file.bytes && received === file.bytes) return `${size}, all here`;
  const share = `${sizeInWords(received)} of ${size}`;
  if (file.source) return file.reason ? `${share}. ${file.reason} It is tried again.` : `${share}, being fetched`;
  return `${share}. Choose the file again to go on.`;
}

function describeSender(sender, received, size) {
  if (sender.state === "waiting") return `${size}, waits for its turn`;
  if (sender.state === "hashing") {
    return `A file of this size is here: comparing, ${percent(sender.hashed, sender.file.size)}`;
  }
  const share = `${sizeInWords(received)} of ${size} (${percent(received, sender.file.size)})`;
  if (sender.state === "paused") return `${share}, paused`;
  if (sender.isHashed) return `${share}. Its hash is computed: ${percent(sender.hashed, sender.file.size)}`;
  if (sender.words) return `${share}. ${sender.words}`;
  if (!sender.speed) return share;
  return `${share}, ${sizeInWords(sender.speed)}/s, ${timeInWords(sender.secondsLeft)} left`;
}

function percent(part, whole) {
  return `${Math.floor((100 * part) / Math.max(whole, 1))} %`;
}
