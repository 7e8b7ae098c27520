// The thread: what was said, what is being said, and starting, stopping and repeating it.

import { Answer } from "./answer.js";
import { MessageView } from "./message_view.js";
import { readThread, writeThread } from "./thread_store.js";

export class Conversation {
  #socket;
  #settings;
  #picker;
  #list;
  #scroller;
  #hooks;
  #turns = [];
  #chatId = null;
  #run = null;

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
    this.#restore();
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
    this.#store();
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
    this.#turns.push({ role, author, view });
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
    this.#store();
    this.#hooks.announce("Waiting for the answer.");
    this.#chatId = this.#socket.start(body, this.#follower(view));
    this.#hooks.onChange();
  }

  // Notes the run as soon as it is known, so that a page that is loaded again finds the answer.
  #follower(view, isResumed = false) {
    const answer = new Answer(view, {
      onProgress: this.#hooks.onProgress,
      onEnd: (reason) => this.#finish(view, reason),
      isResumed,
    });
    return (frame) => {
      if (frame.run && frame.run !== this.#run) {
        this.#run = frame.run;
        this.#store();
      }
      answer.handle(frame);
    };
  }

  #store() {
    const turns = this.#turns.map(({ role, author, view }) => ({ role, author, text: view.text }));
    writeThread({ turns, run: this.#run });
  }

  // Lays out what was said before the page was loaded, and goes on with what was being said.
  #restore() {
    const { turns, run } = readThread();
    for (const [index, { role, author, text }] of turns.entries()) {
      const view = this.#push(role, author);
      if (role === "user") {
        view.setPlain(text);
      } else if (run && index === turns.length - 1) {
        this.#run = run;
        this.#chatId = this.#socket.resume(run, this.#follower(view, true));
      } else {
        view.append(text);
        this.#offer(view);
      }
    }
  }

  #offer(view) {
    view.setActions({ copy: Boolean(view.text), regenerate: () => this.#regenerate() });
  }

  #finish(view, reason) {
    this.#chatId = null;
    this.#run = null;
    this.#store();
    this.#offer(view);
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
