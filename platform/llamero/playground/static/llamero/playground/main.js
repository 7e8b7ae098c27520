// Brings the playground to life: wires the page to the socket, the settings and the thread.

import { Conversation } from "./conversation.js";
import { ModelPicker } from "./models.js";
import { Settings } from "./settings.js";
import { ChatSocket } from "./socket.js";

const find = (id) => document.getElementById(id);
const prompt = find("prompt");
const sendButton = find("send");
const stopButton = find("stop");
const drawer = find("drawer");
const settingsForm = find("settings");
const { socketPath, modelsUrl, loginUrl } = document.body.dataset;
const CONNECTION_WORDS = {
  connecting: "Connecting",
  open: "Connected",
  lost: "Reconnecting",
  "signed-out": "Signed out",
};

const wide = window.matchMedia("(min-width: 62rem)");
const settings = new Settings(settingsForm, () => wide.matches || drawer.showModal());
const picker = new ModelPicker(settingsForm, modelsUrl, update);
const socket = new ChatSocket(socketPath, showConnection);
const conversation = new Conversation({
  socket,
  settings,
  picker,
  list: find("messages"),
  scroller: find("thread"),
  hooks: {
    onChange: update,
    onProgress: (text) => (find("live-stats").textContent = text),
    announce: (text) => (find("announcer").textContent = text),
  },
});

function showConnection(state) {
  find("connection").dataset.state = state;
  find("connection-text").textContent = CONNECTION_WORDS[state];
  const banner = find("banner");
  banner.hidden = state !== "signed-out";
  if (state === "signed-out") {
    const link = document.createElement("a");
    link.href = loginUrl;
    link.textContent = "Sign in again";
    banner.replaceChildren("You were signed out. ", link);
  }
  queueMicrotask(update);
}

function update() {
  const { isBusy, isEmpty } = conversation;
  const hadFocus = document.activeElement === sendButton || document.activeElement === stopButton;
  sendButton.hidden = isBusy;
  stopButton.hidden = !isBusy;
  sendButton.disabled = !canSend();
  find("clear").disabled = isEmpty;
  find("welcome").hidden = !isEmpty;
  for (const button of document.querySelectorAll(".suggestion")) button.disabled = !canStart();
  if (hadFocus && !isBusy) prompt.focus();
}

function canStart() {
  return socket.isReady && !conversation.isBusy && picker.chosen !== null;
}

function canSend() {
  return canStart() && prompt.value.trim() !== "";
}

function send() {
  if (!canSend() || !settings.check()) return;
  const text = prompt.value.trim();
  prompt.value = "";
  grow();
  conversation.send(text);
  prompt.focus();
}

function grow() {
  prompt.style.height = "auto";
  prompt.style.height = `${Math.min(prompt.scrollHeight, window.innerHeight * 0.4)}px`;
}

// On a narrow screen the settings are a dialog, on a wide one a column.
function placeSettings({ matches: isWide }) {
  if (isWide && drawer.open) drawer.close();
  (isWide ? find("panel") : drawer).append(settingsForm);
}

find("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
prompt.addEventListener("input", () => {
  grow();
  update();
});
prompt.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
stopButton.addEventListener("click", () => conversation.stop());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !drawer.open) conversation.stop();
});
find("clear").addEventListener("click", () => {
  conversation.clear();
  prompt.focus();
});
for (const button of document.querySelectorAll(".suggestion")) {
  button.addEventListener("click", () => {
    prompt.value = button.textContent;
    send();
  });
}
find("open-settings").addEventListener("click", () => drawer.showModal());
find("close-settings").addEventListener("click", () => drawer.close());
drawer.addEventListener("click", (event) => {
  if (event.target === drawer) drawer.close();
});

wide.addEventListener("change", placeSettings);
placeSettings(wide);
prompt.focus();
