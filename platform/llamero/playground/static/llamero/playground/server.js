// What the page asks of the server: JSON both ways, as the signed-in user.

const CSRF_COOKIE = /(?:^|; )llamero_csrf=([^;]+)/;

// Signing in again, in another window, makes another token.
function readToken() {
  return CSRF_COOKIE.exec(document.cookie)?.[1] ?? document.body.dataset.csrf;
}

export class ServerError extends Error {
  constructor(status, message, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// Resolves to the document of the answer, null where there is none.
export async function ask(method, path, body) {
  let response;
  try {
    response = await fetch(`/playground/${path}`, {
      method,
      redirect: "error",
      headers: { Accept: "application/json", "Content-Type": "application/json", "X-CSRFToken": readToken() },
      body: method === "GET" ? undefined : JSON.stringify(body ?? {}),
    });
  } catch {
    throw new ServerError(0, "The server cannot be reached.");
  }
  if (response.status === 204) return null;
  const document = await response.json().catch(() => ({}));
  if (response.ok) return document;
  const { message, code } = document.error ?? {};
  throw new ServerError(response.status, message ?? `The server answered ${response.status}.`, code);
}
