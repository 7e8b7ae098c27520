// What other windows of the same browser have changed, and windows elsewhere by the time this one
// is looked at again.

const channel = "BroadcastChannel" in window ? new BroadcastChannel("llamero.playground") : null;

export function tellOthers(chatId) {
  channel?.postMessage({ chatId });
}

// look is called with the id of a chat that has changed, or with null where any may have.
export function watchOthers(look) {
  channel?.addEventListener("message", ({ data }) => look(data.chatId));
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look(null);
  });
  window.addEventListener("focus", () => look(null));
}
