// One message of a column: its text, what state it is in, and what can be done with it.

import { copyText, make, makeAction, makeIcon, makeIconButton } from "./elements.js";
import { renderMarkdown } from "./markdown.js";

let numEdits = 0;

export class MessageView {
  element = make("li");
  #text = "";
  #reasoning = "";
  #calls = [];
  #thoughts = make("details", "message-reasoning");
  #thoughtText = make("div", "message-thoughts");
  #body = make("div", "message-body");
  #callList = make("div", "message-calls");
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
    this.#thoughts.hidden = true;
    this.#thoughts.append(make("summary", "", "Reasoning"), this.#thoughtText);
    this.#foot.append(this.#actions, this.#stats);
    this.element.append(make("h3", "message-author", author), this.#thoughts, this.#body);
    this.element.append(this.#callList, this.#note, this.#error, this.#foot);
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
    this.#renderSoon();
  }

  addReasoning(text) {
    this.#reasoning += text;
    this.setNote("Thinking…");
    this.#renderSoon();
  }

  addCall(call) {
    this.#calls.push(call);
    this.setNote("");
    this.#renderSoon();
  }

  growCall(index, text) {
    this.#calls[index].arguments += text;
    this.#renderSoon();
  }

  // Shows an answer that is whole.
  showWhole({ text, reasoning, calls }) {
    this.#text = text;
    this.#reasoning = reasoning;
    this.#calls = calls;
    this.#render();
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

  // Which of several branches this is: turn(-1) and turn(1) go to its neighbours.
  setActions({ branch = null, edit = null, regenerate = null, keep = null, showCode = null }) {
    this.#actions.replaceChildren();
    if (branch && branch.count > 1) this.#actions.append(makeBranchSwitch(branch));
    if (this.#text) this.#actions.append(makeAction("content_copy", "Copy", (button) => copyText(this.#text, button)));
    if (edit) this.#actions.append(makeAction("edit", "Edit", (button) => this.#edit(edit, button)));
    if (regenerate) this.#actions.append(makeAction("refresh", "Regenerate", regenerate));
    if (keep) this.#actions.append(makeAction("check", "Go on with this", keep));
    if (showCode) this.#actions.append(makeAction("code", "Code", showCode));
  }

  // Asks for what the tools that the model called have given.
  askResults(send) {
    const form = make("form", "message-results");
    for (const call of this.#calls) {
      const field = make("textarea");
      field.rows = 2;
      field.required = true;
      field.dataset.call = call.id;
      form.append(make("label", "", `What ${call.name} gives`, field));
    }
    const button = make("button", "button button-primary", "Send results");
    form.append(button);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send([...form.querySelectorAll("textarea")].map(({ dataset, value }) => ({ id: dataset.call, text: value })));
    });
    this.#callList.append(form);
  }

  #edit(send, button) {
    const form = make("form", "message-edit");
    const field = make("textarea");
    field.value = this.#text;
    field.rows = Math.min(12, this.#text.split("\n").length + 1);
    field.setAttribute("aria-label", "Edited message");
    field.enterKeyHint = "send";
    const hint = make("p", "message-hint", make("kbd", "", "Enter"), " sends · ", make("kbd", "", "Shift"), " ", make("kbd", "", "Enter"), " new line · ", make("kbd", "", "Esc"), " cancels");
    hint.id = `edit-hint-${++numEdits}`;
    field.setAttribute("aria-describedby", hint.id);
    const cancel = make("button", "button", "Cancel");
    cancel.type = "button";
    const leave = () => {
      form.replaceWith(this.#body);
      this.#foot.hidden = false;
    };
    const cancelNow = () => {
      leave();
      button.focus();
    };
    cancel.addEventListener("click", cancelNow);
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      cancelNow();
    });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim() && send(field.value.trim())) leave();
    });
    form.append(field, make("div", "message-edit-buttons", hint, cancel, make("button", "button button-primary", "Send")));
    this.#body.replaceWith(form);
    this.#foot.hidden = true;
    field.focus();
  }

  #renderSoon() {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#render());
  }

  #render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#body.replaceChildren(renderMarkdown(this.#text));
    this.#thoughts.hidden = !this.#reasoning;
    this.#thoughtText.replaceChildren(renderMarkdown(this.#reasoning));
    this.#callList.replaceChildren(...this.#calls.map(makeCall));
  }
}

function makeCall({ name, arguments: json }) {
  const box = make("div", "message-call", make("p", "", makeIcon("build"), make("strong", "", name)), make("pre", "", layOut(json)));
  box.lastElementChild.tabIndex = 0;
  return box;
}

function layOut(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function makeBranchSwitch({ index, count, turn }) {
  const back = makeIconButton("chevron_left", "Earlier branch", () => turn(-1));
  const on = makeIconButton("chevron_right", "Later branch", () => turn(1));
  back.disabled = index === 0;
  on.disabled = index === count - 1;
  return make("span", "branch", back, make("span", "branch-place", `${index + 1}/${count}`), on);
}
