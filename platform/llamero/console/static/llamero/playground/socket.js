// The chat socket: connects, comes back after a loss, and hands frames to whoever started a chat.

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 8000;
const PING_MS = 20000;
const HELLO_TIMEOUT_MS = 10000;
const SIGNED_OUT_CODES = new Set([4401, 4403]);

export class ChatSocket {
  #url;
  #socket = null;
  #onState;
  #chats = new Map();
  #retryMs = FIRST_RETRY_MS;
  #timers = { retry: 0, ping: 0, hello: 0 };
  #isReady = false;

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

  // Starts a chat; handle gets each of its frames, the last one "done", "error" or "lost".
  start(body, handle) {
    const id = crypto.getRandomValues(new Uint32Array(2)).join("-");
    this.#chats.set(id, handle);
    this.#send({ type: "start", id, ...body });
    return id;
  }

  cancel(id) {
    if (this.#chats.has(id)) this.#send({ type: "cancel", id });
  }

  #send(frame) {
    if (this.#isReady) this.#socket.send(JSON.stringify(frame));
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
      this.#retryMs = FIRST_RETRY_MS;
      this.#timers.ping = setInterval(() => this.#send({ type: "ping" }), PING_MS);
      this.#onState("open");
      return;
    }
    const handle = this.#chats.get(frame.id);
    if (!handle) return;
    if (frame.type === "done" || frame.type === "error") this.#chats.delete(frame.id);
    handle(frame);
  }

  #lose(code) {
    this.#isReady = false;
    clearTimeout(this.#timers.hello);
    clearInterval(this.#timers.ping);
    const isSignedOut = SIGNED_OUT_CODES.has(code);
    this.#onState(isSignedOut ? "signed-out" : "lost");
    const handles = [...this.#chats.values()];
    this.#chats.clear();
    for (const handle of handles) handle({ type: "lost" });
    if (isSignedOut) return;
    this.#timers.retry = setTimeout(() => this.#connect("lost"), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  #retryNow() {
    if (this.#socket.readyState !== WebSocket.CLOSED || !this.#timers.retry) return;
    clearTimeout(this.#timers.retry);
    this.#timers.retry = 0;
    this.#connect("lost");
  }
}
