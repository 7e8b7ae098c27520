// The chat socket: connects, comes back after a loss and goes on with the chats that ran, and hands
// frames to whoever started them.

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 8000;
const PING_MS = 20000;
const HELLO_TIMEOUT_MS = 10000;
const DETACH_MS = 5000;
const SIGNED_OUT_CODES = new Set([4401, 4403]);

export class ChatSocket {
  #url;
  #socket = null;
  #onState;
  #chats = new Map();
  #retryMs = FIRST_RETRY_MS;
  #timers = { retry: 0, ping: 0, hello: 0 };
  #isReady = false;
  #maxBytes = Infinity;

  // onState is told "connecting", "open", "lost" or "signed-out".
  constructor(path, onState) {
    const url = new URL(path, window.location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.#url = url;
    this.#onState = onState;
    window.addEventListener("online", () => this.#retryNow());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#retryNow();
    });
    this.#connect("connecting");
  }

  get isReady() {
    return this.#isReady;
  }

  // Starts a chat under the name of its run; handle gets each of its frames, the last one "done",
  // "error" or "lost". While the connection is away it gets "paused".
  start(run, body, handle) {
    const frame = { type: "start", resumable: true, run, ...body };
    const chat = { handle, run, seq: 0, frame };
    const id = this.#add(chat);
    this.#begin(id, chat);
    return id;
  }

  // Goes on with a chat that another page began, from its first word; now, or once connected.
  resume(run, handle) {
    const chat = { handle, run, seq: 0, frame: null };
    const id = this.#add(chat);
    this.#goOn(id, chat);
    return id;
  }

  cancel(id) {
    const chat = this.#chats.get(id);
    if (!chat) return;
    if (this.#isReady) return this.#send({ type: "cancel", id });
    this.#chats.delete(id);
    chat.handle({ type: "lost" });
  }

  #add(chat) {
    const id = crypto.getRandomValues(new Uint32Array(2)).join("-");
    this.#chats.set(id, chat);
    return id;
  }

  #begin(id, { frame }) {
    const text = JSON.stringify({ id, ...frame });
    if (new TextEncoder().encode(text).length <= this.#maxBytes) return this.#sendText(text);
    const message = `This chat is longer than the ${this.#maxBytes / 1024} KiB that can be sent at once.`;
    queueMicrotask(() => this.#receive({ type: "error", id, error: { code: "frame_too_large", message } }));
  }

  #goOn(id, { run, seq }) {
    this.#send({ type: "resume", id, run, after: seq });
  }

  #send(frame) {
    this.#sendText(JSON.stringify(frame));
  }

  #sendText(text) {
    if (this.#isReady) this.#socket.send(text);
  }

  #connect(state) {
    this.#onState(state);
    const socket = new WebSocket(this.#url, "llamero.v1");
    this.#socket = socket;
    this.#timers.hello = setTimeout(() => socket.close(), HELLO_TIMEOUT_MS);
    socket.addEventListener("message", (event) => this.#receive(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => this.#lose(event.code));
  }

  #receive(frame) {
    if (frame.type === "hello") {
      clearTimeout(this.#timers.hello);
      this.#isReady = true;
      this.#maxBytes = frame.max_frame_bytes;
      this.#retryMs = FIRST_RETRY_MS;
      this.#timers.ping = setInterval(() => this.#send({ type: "ping" }), PING_MS);
      this.#onState("open");
      for (const [id, chat] of this.#chats) this.#goOn(id, chat);
      return;
    }
    const chat = this.#chats.get(frame.id);
    if (!chat) return;
    if (frame.error?.code === "stream_detached") return this.#detach(frame, chat);
    // The connection was lost before the server had heard of it.
    if (frame.error?.code === "run_not_found" && chat.frame) {
      const { frame: start } = chat;
      chat.frame = null;
      return this.#sendText(JSON.stringify({ id: frame.id, ...start }));
    }
    chat.frame = null;
    if (frame.seq) chat.seq = frame.seq;
    if (frame.type === "done" || frame.type === "error") this.#chats.delete(frame.id);
    chat.handle(frame);
  }

  #lose(code) {
    this.#isReady = false;
    clearTimeout(this.#timers.hello);
    clearInterval(this.#timers.ping);
    const isSignedOut = SIGNED_OUT_CODES.has(code);
    this.#onState(isSignedOut ? "signed-out" : "lost");
    for (const [id, chat] of [...this.#chats]) this.#pause(id, chat, isSignedOut);
    if (isSignedOut) return;
    this.#timers.retry = setTimeout(() => this.#connect("lost"), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  // A server that stops lets go of its chats just before it closes the connection: they are found
  // again. If the connection stays, another window has taken the chat over.
  #detach(frame, chat) {
    const socket = this.#socket;
    setTimeout(() => {
      if (this.#socket !== socket || this.#chats.get(frame.id) !== chat) return;
      this.#chats.delete(frame.id);
      chat.handle(frame);
    }, DETACH_MS);
  }

  #pause(id, chat, isForGood) {
    if (isForGood) this.#chats.delete(id);
    chat.handle({ type: isForGood ? "lost" : "paused" });
  }

  #retryNow() {
    if (this.#socket.readyState !== WebSocket.CLOSED || !this.#timers.retry) return;
    clearTimeout(this.#timers.retry);
    this.#timers.retry = 0;
    this.#connect("lost");
  }
}
