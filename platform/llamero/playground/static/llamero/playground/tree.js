// The messages of a chat: each follows its parent, and several may follow the same.

export class Tree {
  #messages = new Map();

  constructor(messages = []) {
    for (const message of messages) this.put(message);
  }

  get size() {
    return this.#messages.size;
  }

  get(id) {
    return this.#messages.get(id) ?? null;
  }

  put(message) {
    this.#messages.set(message.id, message);
  }

  // From the first message to this one.
  path(leaf) {
    const path = [];
    for (let message = this.get(leaf); message; message = this.get(message.parent)) path.unshift(message);
    return path;
  }

  // All that follow the same message, this one too, the oldest first.
  siblings(message) {
    return [...this.#messages.values()].filter(({ parent }) => parent === message.parent);
  }

  // The end of the newest branch that goes on from a message.
  newestLeaf(id) {
    let newest = id;
    for (;;) {
      const followers = [...this.#messages.values()].filter(({ parent }) => parent === newest);
      if (!followers.length) return newest;
      newest = followers.at(-1).id;
    }
  }

  // The newest message of all, and so the end of a branch.
  get last() {
    return [...this.#messages.keys()].reduce((last, id) => Math.max(last, id), 0) || null;
  }
}

// A path as the API takes it. What an answer was thought with is not sent back.
export function toRequest(path) {
  return path.filter(({ text, calls }) => text || calls.length).map(describe);
}

function describe({ role, text, calls, call_id: callId }) {
  if (role === "tool") return { role, tool_call_id: callId, content: text };
  if (!calls.length) return { role, content: text };
  const toolCalls = calls.map(({ id, name, arguments: json }) => ({
    id,
    type: "function",
    function: { name, arguments: json },
  }));
  return { role, content: text || null, tool_calls: toolCalls };
}
