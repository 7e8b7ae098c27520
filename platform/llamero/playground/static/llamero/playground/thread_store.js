// The thread of this tab, kept over a reload: for whoever is signed in, and until the tab is closed.

const KEY = `llamero.thread.${document.body.dataset.user}`;
const NOTHING = { turns: [], run: null };

export function readThread() {
  try {
    const { turns, run } = JSON.parse(sessionStorage.getItem(KEY)) ?? NOTHING;
    return { turns: Array.isArray(turns) ? turns : [], run };
  } catch {
    return NOTHING;
  }
}

// A thread that is too long for the store is not kept.
export function writeThread(thread) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(thread));
  } catch {
    sessionStorage.removeItem(KEY);
  }
}
