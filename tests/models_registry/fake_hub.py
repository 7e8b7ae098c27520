"""A small Hugging Face hub on this machine: its API for models, and files that redirect to a store.

It answers as the real one does as far as our side asks: model info with sizes and hashes of files,
X-Error-Code for what is private or gated, and ``resolve`` with redirects and ranges.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
TOKEN = "hf_secret"
_RANGE = re.compile(r"bytes=(\d+)-\Z")


@dataclass
class Hub:
    """What it has, and what it was asked. ``cut_after`` ends answers early, one by one."""

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    gated: set[str] = field(default_factory=set)
    cut_after: list[int] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    # Answers of odd servers: path -> status, headers, body.
    odd: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    takes_ranges: bool = True
    url: str = ""

    def asked_of(self, part: str) -> list[dict[str, str]]:
        """Give the headers of requests whose path has a part."""
        return [headers for path, headers in self.asked if part in path]


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: object) -> None:
        """Keep silent."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        if path in self.hub.odd:
            return self._answer(*self.hub.odd[path])
        if path.startswith("/api/models/"):
            return self._describe(path)
        if found := re.fullmatch(
            r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<rev>[^/]+)/(?P<name>.+)", path
        ):
            if self._refuses(found["repo"]):
                return None
            return self._answer(302, {"Location": f"/cdn/{found['repo']}/{found['name']}"})
        if path.startswith("/cdn/"):
            owner, name, file = path.removeprefix("/cdn/").split("/", 2)
            return self._give(self.hub.files[f"{owner}/{name}"][file])
        return self._answer(404, {})

    def _describe(self, path: str) -> None:
        found = re.fullmatch(r"/api/models/(?P<repo>[^/]+/[^/]+)(/revision/(?P<rev>.+))?", path)
        if found is None or found["repo"] not in self.hub.files:
            # The real one does not tell strangers what there is.
            return self._answer(401, {"X-Error-Code": "RepoNotFound"})
        if self._refuses(found["repo"]):
            return None
        if found["rev"] not in (None, "main", COMMIT):
            return self._answer(404, {"X-Error-Code": "RevisionNotFound"})
        siblings = [
            {"rfilename": name, "size": len(data), "blobId": "0" * 40, "lfs": _lfs(data)}
            for name, data in self.hub.files[found["repo"]].items()
        ]
        info = {"id": found["repo"], "modelId": found["repo"], "sha": COMMIT, "siblings": siblings}
        body = json.dumps(info | {"private": False, "tags": [], "downloads": 1, "likes": 0})
        return self._answer(200, {"Content-Type": "application/json"}, body.encode())

    def _refuses(self, repository: str) -> bool:
        """Answer for what this client may not have; tells whether that was done."""
        is_known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        if repository in self.hub.private and not is_known:
            self._answer(401, {"X-Error-Code": "RepoNotFound"})
        elif repository in self.hub.gated and not is_known:
            self._answer(403, {"X-Error-Code": "GatedRepo"})
        else:
            return False
        return True

    def _give(self, data: bytes) -> None:
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "Accept-Ranges": "bytes"}
        found = _RANGE.match(self.headers.get("Range", ""))
        is_same = self.headers.get("If-Range", headers["ETag"]) == headers["ETag"]
        if found and is_same and self.hub.takes_ranges:
            begin = int(found[1])
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
            return self._answer(206, headers, data[begin:])
        return self._answer(200, headers, data)

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if body and status in (200, 206) and self.path.startswith("/cdn/") and self.hub.cut_after:
            body = body[: self.hub.cut_after.pop(0)]
            self.close_connection = True
        self.wfile.write(body)


def _lfs(data: bytes) -> dict[str, object]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Run one while a test needs it."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
