// Elements of the page, made without HTML: whatever they are given is text.

export function make(tag, className = "", ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

export function makeIcon(name) {
  const icon = make("span", "icon", name);
  icon.setAttribute("aria-hidden", "true");
  return icon;
}

// A button with an icon and words beside it.
export function makeAction(icon, label, act) {
  const button = make("button", "action", makeIcon(icon), make("span", "", label));
  button.type = "button";
  button.addEventListener("click", () => act(button));
  return button;
}

// A button that shows an icon alone.
export function makeIconButton(icon, label, act) {
  const button = make("button", "action action-icon", makeIcon(icon));
  button.type = "button";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => act(button));
  return button;
}

export async function copyText(text, button) {
  const label = button.lastElementChild;
  const word = label.textContent;
  try {
    await navigator.clipboard.writeText(text);
    label.textContent = "Copied";
  } catch {
    label.textContent = "Copying is blocked";
  }
  setTimeout(() => (label.textContent = word), 1500);
}
