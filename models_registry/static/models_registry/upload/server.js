// What the page says to the server: imports in JSON, files by tus 1.0.

const UPLOADS = "/v1/model-uploads";
const IMPORTS = "/v1/model-imports";
const TUS = { "Tus-Resumable": "1.0.0" };

/** A refusal of the server: its words are for people. */
export class Refused extends Error {
  constructor(status, error, offset) {
    super(error?.message ?? `The server answers ${status}.`);
    this.status = status;
    this.code = error?.code ?? "";
    this.param = error?.param ?? null;
    this.offset = offset;
  }

  /** Whether the same may well be taken a moment later. */
  get willPass() {
    return [0, 408, 409, 423, 429, 460].includes(this.status) || this.status >= 500 && this.status !== 507;
  }
}

/** Speaks for a page that has the site's token. */
export class Server {
  constructor(token) {
    this.token = token;
  }

  async createImport() {
    return this.#json("POST", IMPORTS, {});
  }

  async readImport(id) {
    return this.#json("GET", `${IMPORTS}/${id}`);
  }

  async wish(id, wish) {
    return this.#json("POST", `${IMPORTS}/${id}`, wish);
  }

  async mayBeHere(size) {
    return (await this.#json("GET", `${UPLOADS}?size=${size}`)).may_be_here;
  }

  /** Begin an upload; gives its id, and where it stands: at its end if the file is here already. */
  async createUpload(file, importId, sha256) {
    const metadata = { filename: file.name, import: importId };
    if (sha256) metadata.sha256 = sha256;
    const pairs = Object.entries(metadata).map(([key, value]) => `${key} ${toBase64(value)}`);
    const answer = await this.#send("POST", UPLOADS, {
      headers: { ...TUS, "Upload-Length": String(file.size), "Upload-Metadata": pairs.join(",") },
    });
    const id = answer.headers.get("Location").split("/").pop();
    return { id, offset: Number(answer.headers.get("Upload-Offset")) };
  }

  async offsetOf(id) {
    const answer = await this.#send("HEAD", `${UPLOADS}/${id}`, { headers: TUS });
    return Number(answer.headers.get("Upload-Offset"));
  }

  async removeUpload(id) {
    await this.#send("DELETE", `${UPLOADS}/${id}`, { headers: TUS });
  }

  /** Send a piece; gives where the upload stands then. Only XMLHttpRequest tells of progress. */
  sendPiece(id, offset, piece, { sha256, signal, onProgress }) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("PATCH", `${UPLOADS}/${id}`);
      const headers = {
        ...TUS,
        "X-CSRFToken": this.token,
        "Content-Type": "application/offset+octet-stream",
        "Upload-Offset": String(offset),
        ...(sha256 ? { "Upload-Sha256": sha256 } : {}),
      };
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = (event) => onProgress(offset + event.loaded);
      request.onload = () => {
        const stands = Number(request.getResponseHeader("Upload-Offset"));
        if (request.status === 204) resolve(stands);
        else reject(new Refused(request.status, readError(request.responseText), stands));
      };
      request.onerror = () => reject(new Refused(0, { message: "The server cannot be reached." }));
      request.onabort = () => reject(new DOMException("paused", "AbortError"));
      signal.addEventListener("abort", () => request.abort(), { once: true });
      request.send(piece);
    });
  }

  async #json(method, url, body) {
    const options = body === undefined ? {} : {
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    };
    return (await this.#send(method, url, options)).json();
  }

  async #send(method, url, { headers = {}, body } = {}) {
    let answer;
    try {
      answer = await fetch(url, { method, body, headers: { "X-CSRFToken": this.token, ...headers } });
    } catch {
      throw new Refused(0, { message: "The server cannot be reached." });
    }
    if (answer.ok) return answer;
    const offset = Number(answer.headers.get("Upload-Offset"));
    throw new Refused(answer.status, readError(await answer.text()), offset);
  }
}

function readError(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return null;
  }
}

function toBase64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
