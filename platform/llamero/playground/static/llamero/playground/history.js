// The list of the user's chats: search, open, rename, share, delete.

import { askText, confirm, showShare } from "./dialogs.js";
import { make, makeIconButton } from "./elements.js";
import { noteFocus } from "./focus.js";
import { ask } from "./server.js";

const SEARCH_MS = 250;

export class History {
  #list;
  #search;
  #more;
  #empty;
  #deleteAll;
  #hooks;
  #chats = [];
  #openId = "";
  #timer = 0;
  #asked = 0;

  // hooks: open(id), onDeleted(id), onAllDeleted(), onRenamed(chat), complain(error).
  constructor(root, hooks) {
    this.#hooks = hooks;
    this.#list = root.querySelector("#chats");
    this.#search = root.querySelector("#chat-search");
    this.#more = root.querySelector("#more-chats");
    this.#empty = root.querySelector("#no-chats");
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.refresh(), SEARCH_MS);
    });
    this.#deleteAll = root.querySelector("#delete-chats");
    this.#deleteAll.addEventListener("click", () => this.#removeAll());
    this.#more.addEventListener("click", () => this.#read(this.#chats.at(-1).id));
    this.refresh();
  }

  refresh() {
    return this.#read("");
  }

  // Marks the chat that is open.
  mark(id) {
    this.#openId = id;
    this.#show();
  }

  // Notes what has become of a chat; one that has changed goes first.
  note(chat) {
    const known = this.#chats.find(({ id }) => id === chat.id);
    if (!known && this.#search.value) return;
    const { messages: _, ...facts } = chat;
    this.#chats = [facts, ...this.#chats.filter(({ id }) => id !== chat.id)];
    this.#show();
  }

  async #read(before) {
    const number = ++this.#asked;
    const query = new URLSearchParams({ search: this.#search.value.trim(), before });
    try {
      const { chats, has_more: hasMore } = await ask("GET", `chats?${query}`);
      // An older question may be answered later.
      if (number !== this.#asked) return;
      this.#chats = before ? [...this.#chats, ...chats] : chats;
      this.#more.hidden = !hasMore;
      this.#show();
    } catch (error) {
      this.#hooks.complain(error);
    }
  }

  #show() {
    const keepFocus = noteFocus(this.#list);
    this.#list.replaceChildren(...this.#chats.map((chat) => this.#makeItem(chat)));
    keepFocus();
    this.#empty.hidden = this.#chats.length > 0;
    // What a search does not show would be deleted, too: so not while one is on.
    this.#deleteAll.hidden = !this.#chats.length || Boolean(this.#search.value);
    this.#empty.textContent = this.#search.value ? "No chat has these words." : "Chats you have are kept here.";
  }

  #makeItem(chat) {
    const title = chat.title || "New chat";
    const link = make("a", "chat-link", title);
    link.href = `/playground/c/${chat.id}`;
    link.title = title;
    if (chat.id === this.#openId) link.setAttribute("aria-current", "page");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.#hooks.open(chat.id);
    });
    const buttons = make(
      "span",
      "chat-buttons",
      makeIconButton("edit", `Rename ${title}`, () => this.#rename(chat)),
      makeIconButton(chat.shared_at ? "link" : "share", `Share ${title}`, () => this.#share(chat)),
      makeIconButton("delete", `Delete ${title}`, () => this.#delete(chat)),
    );
    const item = make("li", "chat-item", link, buttons);
    item.dataset.key = chat.id;
    return item;
  }

  async #rename(chat) {
    const title = await askText({ title: "Rename chat", label: "Name", value: chat.title, action: "Rename" });
    if (title !== null) await this.#change(chat, { title });
  }

  #share(chat) {
    return showShare(chat, (shared) => this.#change(chat, { shared }));
  }

  async #delete(chat) {
    const text = `“${chat.title || "New chat"}” and all its messages will be gone. Whoever has its link loses it, too.`;
    if (!(await confirm({ title: "Delete chat?", text, action: "Delete" }))) return;
    try {
      await ask("DELETE", `chats/${chat.id}`);
    } catch (error) {
      if (error.status !== 404) return this.#hooks.complain(error);
    }
    this.#chats = this.#chats.filter(({ id }) => id !== chat.id);
    this.#show();
    this.#hooks.onDeleted(chat.id);
  }

  async #removeAll() {
    const text = "All your chats and all their messages will be gone, in other windows too. Whoever has a link to one loses it.";
    if (!(await confirm({ title: "Delete all chats?", text, action: "Delete all" }))) return;
    try {
      await ask("DELETE", "chats");
    } catch (error) {
      return this.#hooks.complain(error);
    }
    this.#chats = [];
    this.#more.hidden = true;
    this.#show();
    this.#hooks.onAllDeleted();
  }

  // Gives the chat as it is now.
  async #change(chat, changes) {
    try {
      Object.assign(chat, await ask("PATCH", `chats/${chat.id}`, changes));
      this.#show();
      this.#hooks.onRenamed(chat);
    } catch (error) {
      this.#hooks.complain(error);
    }
    return chat;
  }
}
