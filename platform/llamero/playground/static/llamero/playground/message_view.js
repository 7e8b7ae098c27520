// One message of the thread: its text, what state it is in, and what can be done with it.

import { renderMarkdown } from "./markdown.js";

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

function makeIcon(name) {
  const icon = make("span", "icon", name);
  icon.setAttribute("aria-hidden", "true");
  return icon;
}

function makeAction(icon, label, act) {
  const button = make("button", "action");
  button.type = "button";
  button.append(makeIcon(icon), make("span", "", label));
  button.addEventListener("click", () => act(button));
  return button;
}

async function copyText(text, button) {
  const label = button.lastElementChild;
  try {
    await navigator.clipboard.writeText(text);
    label.textContent = "Copied";
  } catch {
    label.textContent = "Copying is blocked";
  }
  setTimeout(() => (label.textContent = "Copy"), 1500);
}

export class MessageView {
  element = make("li");
  #text = "";
  #body = make("div", "message-body");
  #note = make("p", "message-note");
  #error = make("div", "message-error");
  #foot = make("div", "message-foot");
  #stats = make("p", "message-stats");
  #actions = make("div", "message-actions");
  #frame = 0;

  constructor(role, author) {
    this.element.className = `message message-${role}`;
    this.element.dataset.role = role;
    this.#error.hidden = true;
    this.#error.setAttribute("role", "alert");
    this.#note.hidden = true;
    this.#foot.append(this.#actions, this.#stats);
    this.element.append(make("h3", "message-author", author), this.#body);
    this.element.append(this.#note, this.#error, this.#foot);
  }

  get text() {
    return this.#text;
  }

  setPlain(text) {
    this.#text = text;
    this.#body.textContent = text;
  }

  // Markdown is laid out anew at most once a frame, however fast tokens come.
  append(text) {
    this.#text += text;
    this.setNote("");
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#render());
  }

  setNote(text) {
    this.#note.textContent = text;
    this.#note.hidden = !text;
  }

  setStreaming(isStreaming) {
    this.element.classList.toggle("is-streaming", isStreaming);
    this.element.setAttribute("aria-busy", String(isStreaming));
    if (!isStreaming && this.element.dataset.role === "assistant") this.#render();
  }

  setStats(parts) {
    this.#stats.replaceChildren(...parts.map((part) => make("span", "stat", part)));
  }

  showError(title, detail) {
    this.#error.replaceChildren(makeIcon("error"), make("strong", "", title), make("span", "", detail));
    this.#error.hidden = false;
  }

  setActions({ copy = false, regenerate = null }) {
    this.#actions.replaceChildren();
    if (copy) this.#actions.append(makeAction("content_copy", "Copy", (button) => copyText(this.#text, button)));
    if (regenerate) this.#actions.append(makeAction("refresh", "Regenerate", regenerate));
  }

  #render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#body.replaceChildren(renderMarkdown(this.#text));
  }
}
