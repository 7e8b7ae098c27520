// Renews the numbers of the admin's home page as they change: over a WebSocket, else by asking.

const LONGEST_PAUSE_MS = 15_000;
const ASK_EVERY_MS = 5_000;
const REFRESH_EVERY_MS = 30_000;
const GIVES_UP_CODES = new Set([4403]);

const part = document.getElementById("overview");
const link = document.getElementById("overview-link");

const numbers = new Map();
let shape = part.dataset.shape;
let pauseMs = 1000;
let isAsking = false;
let socket = null;

function show(state, text) {
  // Said once, not every time: a screen reader would repeat it.
  if (link.dataset.state === state) return;
  link.dataset.state = state;
  link.textContent = text;
}

function write() {
  for (const element of part.querySelectorAll("[data-live]")) {
    const text = numbers.get(element.dataset.live);
    if (text !== undefined && element.textContent !== text) element.textContent = text;
  }
  for (const element of part.querySelectorAll("[data-live-value]")) {
    const value = numbers.get(element.dataset.liveValue);
    if (value !== undefined) element.value = Number(value);
  }
}

// Draws all anew, keeping the keyboard where it is if that is still there.
async function refresh() {
  if (isAsking || document.hidden) return;
  isAsking = true;
  try {
    const answer = await fetch(part.dataset.url);
    if (!answer.ok || answer.redirected) return;
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.innerHTML = await answer.text();
    write();
    if (focused) part.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  } catch {
    // The next round tries again.
  } finally {
    isAsking = false;
  }
}

function hear(message) {
  const frame = JSON.parse(message.data);
  for (const [name, text] of Object.entries(frame.values)) numbers.set(name, text);
  write();
  if (frame.shape !== shape) {
    shape = frame.shape;
    refresh();
  }
}

function connect() {
  if (document.hidden) return;
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(`${scheme}//${location.host}${part.dataset.socketPath}`);
  socket.addEventListener("message", (message) => {
    pauseMs = 1000;
    show("live", "Live");
    hear(message);
  });
  socket.addEventListener("close", (event) => {
    socket = null;
    if (GIVES_UP_CODES.has(event.code)) {
      show("ended", "Sign in again to see live numbers");
      return;
    }
    if (document.hidden) return;
    show("away", "Numbers are renewed now and then");
    setTimeout(connect, pauseMs);
    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  });
}

// Exchanges the chart in place; without scripts its links load the page anew.
document.addEventListener("click", async (event) => {
  const chart = document.getElementById("history");
  const choice = event.target instanceof Element ? event.target.closest("#history nav a") : null;
  if (!choice || !chart || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const query = new URL(choice.href).search;
  const answer = await fetch(chart.dataset.url + query).catch(() => null);
  if (!answer?.ok || answer.redirected) {
    location.assign(choice.href);
    return;
  }
  chart.outerHTML = await answer.text();
  document.querySelector(`#history nav a[href^="${CSS.escape(query)}"]`)?.focus({ preventScroll: true });
});

// A page that nobody looks at costs nothing.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) socket?.close();
  else if (!socket) connect();
});

if ("isBlank" in part.dataset) {
  link.hidden = true;
} else {
  setInterval(() => {
    if (link.dataset.state === "away") refresh();
  }, ASK_EVERY_MS);
  setInterval(refresh, REFRESH_EVERY_MS);
  connect();
}
