// The thread: what was said, what is being said, and starting, stopping and repeating it.

import { Answer } from "./answer.js";
import { MessageView } from "./message_view.js";

export class Conversation {
  #socket;
  #settings;
  #picker;
  #list;
  #scroller;
  #hooks;
  #turns = [];
  #chatId = null;

  // hooks: onChange(), onProgress(text), announce(text).
  constructor({ socket, settings, picker, list, scroller, hooks }) {
    this.#socket = socket;
    this.#settings = settings;
    this.#picker = picker;
    this.#list = list;
    this.#scroller = scroller;
    this.#hooks = hooks;
    new ResizeObserver(() => this.#follow()).observe(list);
    scroller.addEventListener("scroll", () => (this.isFollowing = this.#isAtEnd()));
    this.isFollowing = true;
  }

  get isBusy() {
    return this.#chatId !== null;
  }

  get isEmpty() {
    return this.#turns.length === 0;
  }

  send(text) {
    this.#push("user", "You").setPlain(text);
    this.#answer();
  }

  stop() {
    if (this.isBusy) this.#socket.cancel(this.#chatId);
  }

  clear() {
    this.stop();
    this.#turns = [];
    this.#list.replaceChildren();
    this.#hooks.onChange();
  }

  #regenerate() {
    if (this.isBusy || !this.#socket.isReady || !this.#settings.check()) return;
    this.#turns.pop().view.element.remove();
    this.#answer();
  }

  #push(role, author) {
    const view = new MessageView(role, author);
    this.#turns.at(-1)?.view.setActions({ copy: true });
    this.#turns.push({ role, view });
    this.#list.append(view.element);
    this.isFollowing = true;
    this.#follow();
    return view;
  }

  #answer() {
    const { id: model } = this.#picker.chosen;
    const messages = this.#turns
      .filter(({ view }) => view.text)
      .map(({ role, view }) => ({ role, content: view.text }));
    const body = { model, messages, ...this.#settings.readSampling() };
    if (this.#settings.system) body.system = this.#settings.system;
    const view = this.#push("assistant", model);
    const answer = new Answer(view, this.#hooks.onProgress, (reason) => this.#finish(view, reason));
    this.#hooks.announce("Waiting for the answer.");
    this.#chatId = this.#socket.start(body, (frame) => answer.handle(frame));
    this.#hooks.onChange();
  }

  #finish(view, reason) {
    this.#chatId = null;
    view.setActions({ copy: Boolean(view.text), regenerate: () => this.#regenerate() });
    const lead = { cancelled: "Stopped. ", error: "The answer failed. " }[reason] ?? "";
    this.#hooks.announce(lead + view.text);
    this.#hooks.onProgress("");
    this.#hooks.onChange();
  }

  #isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < 48;
  }

  #follow() {
    if (this.isFollowing) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }
}
