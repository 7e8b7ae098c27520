// The page's one dialog, filled with what is asked or shown.

import { copyText, make, makeAction } from "./elements.js";

const dialog = document.getElementById("dialog");

function open(title, ...content) {
  const heading = make("h2", "", title);
  heading.id = "dialog-title";
  dialog.replaceChildren(heading, ...content);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}

function makeForm(action, isDangerous, ...content) {
  const cancel = make("button", "button", "Cancel");
  cancel.type = "button";
  cancel.addEventListener("click", () => dialog.close(""));
  const go = make("button", isDangerous ? "button button-danger" : "button button-primary", action);
  go.value = "go";
  const form = make("form", "dialog-form", ...content, make("div", "dialog-buttons", cancel, go));
  form.method = "dialog";
  return form;
}

// Resolves to what was entered, null if it was cancelled.
export async function askText({ title, label, value = "", action }) {
  const field = make("input");
  field.value = value;
  field.required = true;
  field.maxLength = 100;
  const answer = open(title, makeForm(action, false, make("label", "dialog-field", label, field)));
  field.select();
  return (await answer) === "go" ? field.value.trim() : null;
}

export async function confirm({ title, text, action }) {
  return (await open(title, makeForm(action, true, make("p", "", text)))) === "go";
}

// Shows whether a chat is shared; change(isShared) resolves to the chat as it is then.
export async function showShare(chat, change) {
  const about = make("p", "", "");
  const field = make("input");
  field.readOnly = true;
  field.setAttribute("aria-label", "Link");
  const copy = makeAction("content_copy", "Copy link", () => copyText(field.value, copy));
  const switchButton = make("button", "button button-primary", "");
  switchButton.type = "button";
  const show = () => {
    const isShared = Boolean(chat.shared_at);
    about.textContent = isShared
      ? "Whoever is signed in here and has this link can read what you see of this chat, also what is added. Nobody can change it."
      : "Only you can read this chat. A link lets others read it who are signed in here.";
    field.hidden = copy.hidden = !isShared;
    field.value = isShared ? new URL(chat.shared_at, window.location.href).href : "";
    switchButton.textContent = isShared ? "Stop sharing" : "Make a link";
  };
  switchButton.addEventListener("click", async () => {
    Object.assign(chat, await change(!chat.shared_at));
    show();
  });
  const close = make("button", "button", "Close");
  close.type = "button";
  close.addEventListener("click", () => dialog.close(""));
  show();
  await open("Share chat", about, field, copy, make("div", "dialog-buttons", switchButton, close));
}

// Shows the same request in several languages: {name: text}.
export function showCode(versions) {
  const pre = make("pre", "code-text");
  pre.tabIndex = 0;
  const tabs = make("div", "code-tabs");
  tabs.setAttribute("role", "group");
  tabs.setAttribute("aria-label", "Language");
  const choose = (name) => {
    pre.textContent = versions[name];
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.textContent === name));
  };
  for (const name of Object.keys(versions)) {
    const tab = make("button", "button", name);
    tab.type = "button";
    tab.addEventListener("click", () => choose(name));
    tabs.append(tab);
  }
  choose(Object.keys(versions)[0]);
  const about = make("p", "", "Put an API key of yours into the variable LLAMERO_API_KEY.");
  const copy = makeAction("content_copy", "Copy", () => copyText(pre.textContent, copy));
  const close = make("button", "button", "Close");
  close.type = "button";
  close.addEventListener("click", () => dialog.close(""));
  dialog.classList.add("wide");
  return open("Code", about, tabs, pre, make("div", "dialog-buttons", copy, close)).then(() => dialog.classList.remove("wide"));
}
