// A chat that somebody else has shared: shown, and nothing else.

import { makeView } from "./column.js";
import { make } from "./elements.js";

const columns = JSON.parse(document.getElementById("messages").textContent);

function makeColumn(path, index) {
  const list = make("ol", "messages");
  for (const message of path) {
    const view = makeView(message);
    view.setActions({});
    list.append(view.element);
  }
  const column = make("section", "column", list);
  column.setAttribute("aria-label", columns.length > 1 ? `Messages ${index + 1}` : "Messages");
  return column;
}

document.getElementById("columns").append(...columns.map(makeColumn));
