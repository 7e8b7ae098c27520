// Brings the playground to life: wires the page to the socket, the settings and the open chat.

import { showCode } from "./dialogs.js";
import { toChatBody, writeChat } from "./code.js";
import { ColumnTabs } from "./column_tabs.js";
import { Conversation } from "./conversation.js";
import { History } from "./history.js";
import { ModelPicker, Models } from "./models.js";
import { Panels } from "./panels.js";
import { Presets } from "./presets.js";
import { ask } from "./server.js";
import { Settings } from "./settings.js";
import { ChatSocket } from "./socket.js";
import { tellOthers, watchOthers } from "./windows.js";

const find = (id) => document.getElementById(id);
const prompt = find("prompt");
const sendButton = find("send");
const stopButton = find("stop");
const banner = find("banner");
const { socketPath, loginUrl, chat: firstChat } = document.body.dataset;
const CONNECTION_WORDS = {
  connecting: "Connecting",
  open: "Connected",
  lost: "Reconnecting",
  "signed-out": "Signed out",
};

const panels = new Panels();
const settings = new Settings(find("settings"), () => panels.showSettings());
const chats = ({ kind }) => kind === "chat";
const pickers = [new ModelPicker("model", chats, begin), new ModelPicker("second-model", chats, update)];
new Models(pickers);
new Presets(find("settings"), settings, complain);
const socket = new ChatSocket(socketPath, showConnection);
const conversation = new Conversation({
  socket,
  elements: [find("first-column"), find("second-column")],
  hooks: {
    readRequest,
    onChange: update,
    onProgress: (text) => (find("live-stats").textContent = text),
    announce: (text) => (find("announcer").textContent = text),
    onChat: noteChat,
    onKept: (column) => {
      pickers[0].choose(pickers[column].chosen?.id);
      prompt.focus();
    },
    onUnsent: giveBack,
    complain,
    showCode: (body) => showCode(writeChat(toChatBody(body))),
  },
});
const columnTabs = new ColumnTabs(find("column-tabs"), [find("first-column"), find("second-column")]);
const history = new History(find("history"), {
  open: openChat,
  onRenamed: (chat) => {
    if (conversation.chat?.id === chat.id) Object.assign(conversation.chat, chat);
    noteTitle();
    tellOthers(chat.id);
  },
  onDeleted: (id) => {
    tellOthers(id);
    if (conversation.chat?.id === id) leaveChat();
  },
  onAllDeleted: () => {
    tellOthers(null);
    leaveChat();
  },
  complain,
});

// With the seed of the answer before, another answer would be the same one.
function readRequest(column, isAnother) {
  const model = pickers[column].chosen;
  if (!model || !settings.check()) return null;
  const request = { model: model.id, ...settings.read() };
  const isSeeded = request.seed !== undefined || model.defaults.seed !== undefined;
  return isAnother && isSeeded ? { ...request, seed: drawSeed() } : request;
}

function drawSeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0];
}

function noteChat(chat) {
  const path = `/playground/c/${chat.id}`;
  if (window.location.pathname !== path) window.history.pushState({}, "", path);
  history.note(chat);
  history.mark(chat.id);
  noteTitle();
  tellOthers(chat.id);
}

function noteTitle() {
  const { title } = conversation.chat ?? {};
  document.title = title ? `${title} | Llamero` : "Playground | Llamero";
}

async function openChat(id, { isNew = true } = {}) {
  let chat;
  try {
    chat = await ask("GET", `chats/${id}`);
  } catch (error) {
    complain(error.status === 404 ? new Error("This chat does not exist, or it is another user's.") : error);
    return beginChat();
  }
  panels.close();
  hideBanner();
  if (isNew) window.history.pushState({}, "", `/playground/c/${id}`);
  conversation.open(chat);
  chat.leaves.slice(0, 2).forEach((leaf, column) => showRequest(chat, leaf, column));
  history.mark(id);
  noteTitle();
  update();
  prompt.focus();
}

// The settings go on as they were in a chat.
function showRequest(chat, leaf, column) {
  const { request } = chat.messages.find(({ id }) => id === leaf) ?? {};
  if (!request?.model) return;
  const { model, ...rest } = request;
  pickers[column].choose(model);
  if (column === 0) settings.show(rest);
}

function beginChat() {
  conversation.open(null);
  panels.close();
  if (window.location.pathname !== "/playground") window.history.pushState({}, "", "/playground");
  history.mark("");
  noteTitle();
  update();
  prompt.focus();
}

// What is told of a chat that was deleted is told to nobody.
function leaveChat() {
  conversation.stop();
  beginChat();
}

async function lookAtOthers(id) {
  const { chat } = conversation;
  if (id === null || id !== chat?.id) history.refresh();
  if (!chat || (id !== null && id !== chat.id)) return;
  try {
    const fresh = await ask("GET", `chats/${chat.id}`);
    if (conversation.chat !== chat || conversation.isBusy || fresh.revision <= chat.revision) return;
    conversation.merge(fresh);
    noteTitle();
  } catch (error) {
    if (error.status !== 404 || conversation.chat !== chat) return;
    beginChat();
    showBanner("The chat was deleted in another window.");
  }
}

function showConnection(state) {
  find("connection").dataset.state = state;
  find("connection-text").textContent = CONNECTION_WORDS[state];
  if (state === "signed-out") {
    const link = document.createElement("a");
    link.href = loginUrl;
    link.textContent = "Sign in again";
    showBanner("You were signed out. ", link);
  }
  queueMicrotask(update);
}

function showBanner(...content) {
  banner.replaceChildren(...content);
  banner.hidden = false;
}

function hideBanner() {
  banner.hidden = true;
}

function complain(error) {
  if (error.status === 401) showConnection("signed-out");
  else showBanner(error.message);
}

// The settings begin as the first model's deployment has them.
function begin(model) {
  if (model) settings.propose(model.defaults);
  update();
}

function update() {
  const { isBusy, isEmpty, isComparing } = conversation;
  const focused = document.activeElement;
  const hadFocus = focused === sendButton || focused === stopButton;
  sendButton.hidden = isBusy;
  stopButton.hidden = !isBusy;
  sendButton.disabled = !canSend();
  find("new-chat").disabled = isEmpty && !conversation.chat;
  find("compare").setAttribute("aria-pressed", String(isComparing));
  find("compare").disabled = isBusy;
  find("second-field").hidden = !isComparing;
  find("code").disabled = !conversation.lastRequest;
  find("welcome").hidden = !isEmpty;
  document.body.classList.toggle("comparing", isComparing);
  columnTabs.name(pickers.map(({ chosen }) => chosen?.id));
  for (const button of document.querySelectorAll(".suggestion")) button.disabled = !canStart();
  if (hadFocus && !isBusy) prompt.focus();
  // What asked for the answer is about to go: an answer that comes can be stopped.
  if (isBusy && focused?.closest(".message-actions, .message-edit, .message-results")) stopButton.focus();
}

function canStart() {
  const asked = conversation.isComparing ? pickers : pickers.slice(0, 1);
  return socket.isReady && !conversation.isBusy && asked.every(({ chosen }) => chosen);
}

function canSend() {
  return canStart() && prompt.value.trim() !== "";
}

function send() {
  if (!canSend() || !conversation.send(prompt.value.trim())) return;
  hideBanner();
  prompt.value = "";
  grow();
  prompt.focus();
}

// Nobody shall have to write again what could not be sent.
function giveBack(text) {
  if (!prompt.value) prompt.value = text;
  grow();
}

function grow() {
  prompt.style.height = "auto";
  prompt.style.height = `${Math.min(prompt.scrollHeight, window.innerHeight * 0.4)}px`;
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
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) conversation.stop();
});
find("new-chat").addEventListener("click", beginChat);
find("compare").addEventListener("click", () => {
  conversation.compare(!conversation.isComparing);
  if (conversation.isComparing) pickers[1].differFrom(pickers[0].chosen);
  update();
});
find("code").addEventListener("click", () => showCode(writeChat(toChatBody(conversation.lastRequest))));
for (const button of document.querySelectorAll(".suggestion")) {
  button.addEventListener("click", () => {
    prompt.value = button.textContent;
    send();
  });
}
window.addEventListener("popstate", () => {
  const id = window.location.pathname.split("/")[3];
  if (id) openChat(id, { isNew: false });
  else beginChat();
});
watchOthers(lookAtOthers);
if (firstChat) openChat(firstChat, { isNew: false });
prompt.focus();
