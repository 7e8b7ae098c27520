// The open chat: what it is made of, what is being said in it, and what its columns show.

import { Answer } from "./answer.js";
import { Column } from "./column.js";
import { ask } from "./server.js";
import { Tree, toRequest } from "./tree.js";

const SETTLE_TRIES = 5;
const SETTLE_PAUSE_MS = 400;

export class Conversation {
  chat = null;
  #tree = new Tree();
  #columns;
  #socket;
  #hooks;
  #isComparing = false;
  #lastRequest = null;

  // hooks: readRequest(column number, whether another answer is asked for) gives what to ask with,
  // or null; onChange(), onProgress(text),
  // announce(text), onChat(chat) when the chat itself has changed, onKept(column number) when the
  // chat goes on with one of two columns, onUnsent(text) when what was said
  // could not be kept, complain(error), and showCode(body).
  constructor({ socket, elements, hooks }) {
    this.#socket = socket;
    this.#hooks = hooks;
    this.#columns = elements.map((element) => new Column(element));
  }

  get isBusy() {
    return this.#columns.some(({ live }) => live);
  }

  get isEmpty() {
    return this.#tree.size === 0;
  }

  get isComparing() {
    return this.#isComparing;
  }

  get lastRequest() {
    return this.#lastRequest;
  }

  get #shown() {
    return this.#isComparing ? this.#columns : this.#columns.slice(0, 1);
  }

  // Shows a chat as the server has it; null begins a new one.
  open(chat) {
    for (const column of this.#columns) column.clear();
    this.chat = chat;
    this.#tree = new Tree(chat?.messages);
    this.#lastRequest = null;
    const leaves = (chat?.leaves ?? []).filter((leaf) => this.#tree.get(leaf));
    if (!leaves.length && this.#tree.last) leaves.push(this.#tree.last);
    this.#isComparing = leaves.length > 1;
    this.#columns.forEach((column, index) => (column.leaf = leaves[index] ?? null));
    this.#show();
    this.#shown.forEach((column) => this.#comeBack(column));
  }

  // Takes in what other windows have added. What is shown here stays.
  merge(chat) {
    this.chat = chat;
    for (const message of chat.messages) this.#take(message);
    this.#show();
    this.#shown.forEach((column) => this.#comeBack(column));
  }

  compare(isComparing) {
    this.#isComparing = isComparing;
    const [first, second] = this.#columns;
    if (isComparing && second.leaf === null) second.leaf = first.leaf;
    this.#show();
    if (isComparing) this.#comeBack(second);
    this.#keepLeaves();
  }

  // Says the same in every column; false if nothing was sent.
  send(text) {
    return this.#say(this.#shown.map((column) => ({ column, turn: { parent: column.leaf, text } })));
  }

  // What is not on the socket yet is stopped as soon as it is.
  stop() {
    for (const { live } of this.#columns) {
      if (live?.id) this.#socket.cancel(live.id);
      else if (live) live.isStopped = true;
    }
  }

  #say(turns) {
    if (this.isBusy || !this.#socket.isReady) return false;
    const asked = turns.map(({ column, turn, isAnother = false }) => ({
      column,
      turn: {
        ...turn,
        column: this.#columns.indexOf(column),
        columns: this.#shown.length,
        request: this.#hooks.readRequest(this.#columns.indexOf(column), isAnother),
      },
    }));
    if (!asked.every(({ turn }) => turn.request)) return false;
    for (const { column } of asked) column.live = { message: null, id: null };
    this.#hooks.onChange();
    this.#hooks.announce("Waiting for the answer.");
    this.#begin(asked);
    return true;
  }

  async #begin(asked) {
    try {
      if (!this.chat) this.chat = { ...(await ask("POST", "chats")), messages: [] };
      const { chat } = this;
      for (const { column, turn } of asked) await this.#add(chat, column, turn);
    } catch (error) {
      this.#hooks.complain(error);
      const [{ column: first, turn }] = asked;
      if (turn.text && first.live && !first.live.message) this.#hooks.onUnsent(turn.text);
      for (const { column } of asked) if (column.live && !column.live.id) column.live = null;
    }
    this.#hooks.onChange();
  }

  async #add(chat, column, turn) {
    const { messages, ...rest } = await ask("POST", `chats/${chat.id}/turns`, turn);
    // Another chat may have been opened meanwhile: the answer is then told to nobody here.
    if (this.chat !== chat) return;
    Object.assign(chat, rest);
    for (const message of messages) this.#tree.put(message);
    const answer = messages.at(-1);
    column.leaf = answer.id;
    const { isStopped } = column.live;
    column.live = { message: answer, id: null };
    this.#show();
    const path = this.#tree.path(answer.parent);
    const body = { ...answer.request, messages: toRequest(path) };
    this.#lastRequest = body;
    column.live.id = this.#socket.start(answer.run, body, this.#follower(column, answer));
    if (isStopped) this.#socket.cancel(column.live.id);
    this.#hooks.onChat(chat);
    this.#hooks.onChange();
  }

  // Goes on with an answer that was being told when the page was loaded.
  #comeBack(column) {
    const message = this.#tree.get(column.leaf);
    if (column.live || message?.state !== "running") return;
    if (this.#columns.some(({ live }) => live?.message?.id === message.id)) return;
    column.live = { message, id: null };
    column.live.id = this.#socket.resume(message.run, this.#follower(column, message, true));
    this.#hooks.onChange();
  }

  #follower(column, message, isResumed = false) {
    const view = column.viewOf(message);
    const answer = new Answer(view, {
      onProgress: this.#hooks.onProgress,
      onEnd: (frame) => this.#finish(column, message, view, frame, isResumed),
      isResumed,
    });
    return (frame) => answer.handle(frame);
  }

  async #finish(column, message, view, frame, isResumed) {
    const lead = { done: frame.finish_reason === "cancelled" ? "Stopped. " : "" }[frame.type] ?? "The answer failed. ";
    this.#hooks.announce(lead + view.text);
    this.#hooks.onProgress("");
    const { chat } = this;
    let settled = null;
    try {
      settled = await settle(message, frame, isResumed);
    } catch (error) {
      if (error.status !== 404) this.#hooks.complain(error);
    }
    if (column.live?.message === message) column.live = null;
    if (settled && this.chat === chat) this.#settle(settled);
    this.#show();
    this.#hooks.onChange();
  }

  #settle({ message, ...rest }) {
    Object.assign(this.chat, rest);
    // The view shows it already, with more than the server knows.
    this.#tree.put(message);
    this.#hooks.onChat(this.chat);
  }

  #take(message) {
    const known = this.#tree.get(message.id);
    if (known?.state === message.state) return;
    this.#tree.put(message);
    for (const column of this.#columns) if (column.live?.message?.id !== message.id) column.forget(message);
  }

  #show() {
    this.#columns[1].element.hidden = !this.#isComparing;
    for (const column of this.#shown) {
      column.show(this.#tree.path(column.leaf), (message) => this.#actionsOf(column, message));
      this.#askResults(column);
    }
  }

  #actionsOf(column, message) {
    const siblings = this.#tree.siblings(message);
    const index = siblings.indexOf(this.#tree.get(message.id));
    const turn = (step) => this.#goTo(column, siblings[index + step]);
    const actions = { branch: { index, count: siblings.length, turn } };
    if (message.role === "user") {
      actions.edit = (text) => this.#say([{ column, turn: { parent: message.parent, text } }]);
    }
    if (message.role !== "assistant") return actions;
    if (message.id === column.leaf) {
      actions.regenerate = () => this.#say([{ column, turn: { parent: message.parent }, isAnother: true }]);
      if (this.#isComparing) actions.keep = () => this.#keep(column);
    }
    actions.showCode = () => {
      const messages = toRequest(this.#tree.path(message.parent));
      this.#hooks.showCode({ ...message.request, messages });
    };
    return actions;
  }

  // Ends a comparison: the chat goes on with one of its columns.
  #keep(column) {
    const [first] = this.#columns;
    if (this.isBusy) return;
    first.leaf = column.leaf;
    this.compare(false);
    this.#hooks.onKept(this.#columns.indexOf(column));
    this.#hooks.onChange();
  }

  #askResults(column) {
    const message = this.#tree.get(column.leaf);
    const isCalling = message?.state === "done" && message.calls.length && !this.#tree.siblings({ parent: message.id }).length;
    const view = message && column.viewOf(message);
    if (!isCalling || !view || view.element.querySelector("form")) return;
    view.askResults((results) => this.#say([{ column, turn: { parent: message.id, results } }]));
  }

  #goTo(column, message) {
    if (column.live) return;
    column.leaf = this.#tree.newestLeaf(message.id);
    this.#show();
    this.#comeBack(column);
    this.#keepLeaves();
  }

  async #keepLeaves() {
    const { chat } = this;
    const leaves = this.#shown.map(({ leaf }) => leaf).filter(Boolean);
    if (!chat || !leaves.length) return;
    try {
      const told = await ask("PATCH", `chats/${chat.id}`, { leaves });
      if (this.chat === chat) Object.assign(chat, told);
    } catch (error) {
      if (error.status !== 404) this.#hooks.complain(error);
    }
  }
}

// Has the server write an answer down; what tells the end may be a moment ahead of what is kept.
async function settle(message, frame, isResumed) {
  for (let tries = 1; ; tries += 1) {
    const settled = await ask("POST", `messages/${message.id}/settle`, describeRefusal(frame, isResumed));
    if (settled.message.state !== "running" || frame.type !== "done" || tries === SETTLE_TRIES) return settled;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_PAUSE_MS));
  }
}

// What the server cannot know: that a run was refused before it began. Of one that was looked for
// again, another window may still be waiting for its model.
function describeRefusal({ type, error }, isResumed) {
  const isRefusal = type === "error" && !isResumed && error.code !== "stream_detached";
  if (isRefusal) return { refusal: { code: String(error.code ?? "failed"), message: error.message } };
  if (type === "done") return { refusal: { code: "cancelled", message: "Stopped before it began." } };
  return {};
}
