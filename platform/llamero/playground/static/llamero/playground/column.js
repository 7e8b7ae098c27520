// One column of the page: the messages from a chat's beginning to a leaf.

import { titleOf } from "./answer.js";
import { noteFocus } from "./focus.js";
import { MessageView } from "./message_view.js";
import { describeOutcome } from "./numbers.js";

export class Column {
  element;
  leaf = null;
  // What streams here: the message, and the socket's id of its chat.
  live = null;
  #list;
  #scroller;
  #views = new Map();
  #isFollowing = true;

  constructor(element) {
    this.element = element;
    this.#scroller = element.querySelector(".thread");
    this.#list = element.querySelector(".messages");
    new ResizeObserver(() => this.#follow()).observe(this.#list);
    this.#scroller.addEventListener("scroll", () => (this.#isFollowing = this.#isAtEnd()));
  }

  viewOf(message) {
    return this.#views.get(message.id);
  }

  // Shows the way to the leaf. Messages that are shown already stay, so that a stream goes on in
  // its place. actionsOf tells what can be done with each.
  show(path, actionsOf) {
    const known = this.#views;
    const keepFocus = noteFocus(this.#list);
    this.#views = new Map();
    const isLonger = path.length > this.#list.children.length;
    for (const message of path) {
      const view = known.get(message.id) ?? makeView(message);
      this.#views.set(message.id, view);
      if (message !== this.live?.message) view.setActions(actionsOf(message));
    }
    const elements = [...this.#views.values()].map(({ element }) => element);
    const isSame = elements.length === this.#list.children.length && elements.every((one, index) => one === this.#list.children[index]);
    if (!isSame) this.#list.replaceChildren(...elements);
    keepFocus();
    if (isLonger) this.#isFollowing = true;
    this.#follow();
  }

  // Has a message be laid out anew the next time.
  forget(message) {
    this.#views.delete(message.id);
  }

  clear() {
    this.leaf = null;
    this.live = null;
    this.#views.clear();
    this.#list.replaceChildren();
  }

  #isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < 48;
  }

  #follow() {
    if (this.#isFollowing) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }
}

const AUTHORS = { user: "You", tool: "Tool" };

export function makeView(message) {
  const view = new MessageView(message.role, AUTHORS[message.role] ?? message.request.model ?? "");
  if (message.role !== "assistant") {
    view.setPlain(message.text);
    return view;
  }
  view.showWhole(message);
  view.setStats(describeOutcome(message.outcome));
  const { error } = message.outcome;
  if (error) view.showError(titleOf(error.code), error.message);
  return view;
}
