"""HTTP requests with limits that hold while bytes arrive, before Daphne queues a body in memory."""

import re
import time
from io import BytesIO
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar

from llamero.api.paths import CHUNK_PATH, UPLOAD_PATH
from llamero.errors import LlameroError
from llamero.request_ids import REQUEST_ID_HEADER, make_request_id, naming_request
from llamero.serve.direct import DirectRequest
from llamero.serve.forwarding import Proxies
from llamero.serve.refusals import error_body, refuse
from models_registry.incoming_ids import is_incoming_id

# A request may take a second more than arrival_seconds for each so many bytes of its body.
SLOWEST_BYTES_PER_SECOND = 16 * 1024
_UPLOAD, _CHUNK = UPLOAD_PATH.encode(), CHUNK_PATH.encode()
_SERVER = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)


def path_of(target: bytes) -> bytes:
    """Give the path of a target that may name the server too, as it does on the way to a proxy."""
    server = _SERVER.match(target)
    if server is None:
        return target
    path = target[server.end() :]
    return path if path.startswith(b"/") else b"/" + path


class LimitedRequest(DirectRequest):
    """A request whose body may not pass ``max_body_bytes`` nor dawdle; refusals close the line.

    Files may have ``max_upload_bytes``, pieces of models' files ``max_chunk_bytes``. They are
    written to ``upload_folder`` as they come, and handed on as ``upload``, an open file without a
    name. A piece for an upload that cannot be ours is refused before any of it comes.
    """

    max_body_bytes = 4 * 2**20
    max_upload_bytes = 4 * 2**20
    max_chunk_bytes = 4 * 2**20
    upload_folder: ClassVar[str | None] = None
    arrival_seconds = 20
    allowed_origins: ClassVar[frozenset[str]] = frozenset()
    proxies: ClassVar[Proxies] = Proxies()
    content: IO[bytes]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.began_at = time.monotonic()
        self.num_body_bytes = 0
        self.has_arrived = False
        self.upload: IO[bytes] | None = None
        self._is_upload = False
        self._most_bytes = self.max_body_bytes
        self.is_refused = False
        # Forms are Django's to read: Twisted would parse them first, and answer bad ones bare.
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)

    def gotLength(self, length: int | None) -> None:
        """Refuse a declared length that is too large before the body comes."""
        super().gotLength(length)
        if self._is_for_nobody():
            self._refuse(404, "There is no such upload.", "upload_not_found")
            return
        self._is_upload = bool(most_bytes := self._most_file_bytes())
        if self._is_upload:
            self._most_bytes = most_bytes
            self.content.close()
            self.content = TemporaryFile(dir=self.upload_folder)  # noqa: SIM115
        if length is not None and length > self._most_bytes:
            self._refuse_size()

    def handleContentChunk(self, data: bytes) -> None:
        """Keep a part of the body, unless it is one too many."""
        self.num_body_bytes += len(data)
        if self.is_refused:
            return
        if self.num_body_bytes > self._most_bytes:
            self._refuse_size()
            return
        super().handleContentChunk(data)

    def expect(self, num_bytes: int) -> None:
        """Refuse a chunk that will be too large before it comes."""
        if not self.is_refused and self.num_body_bytes + num_bytes > self._most_bytes:
            self._refuse_size()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Hand a whole request to the application."""
        self.has_arrived = True
        if self.is_refused:
            return  # the connection ends when the client had time to read why
        self.proxies.settle(self.requestHeaders, getattr(self.client, "host", ""))
        if self._is_upload:
            self.upload, self.content = self.content, BytesIO()
            self.upload.seek(0)
        super().requestReceived(command, path_of(path), version)

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Send a part of the answer; the last one is logged under the request's name."""
        if message.get("more_body") or self.channel is None:
            super().handle_reply(message)
            return
        names = self.responseHeaders.getRawHeaders(REQUEST_ID_HEADER)
        with naming_request(names[0] if names else ""):
            super().handle_reply(message)

    def check_timeouts(self) -> None:
        """End a request that arrives too slowly. Daphne calls this every two seconds."""
        super().check_timeouts()
        allowed = self.arrival_seconds + self.num_body_bytes / SLOWEST_BYTES_PER_SECOND
        if self.has_arrived or self.is_refused or time.monotonic() - self.began_at < allowed:
            return
        self._refuse(408, "Request came too slowly.", "timeout")

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Answer for the server itself, in the API's error shape."""
        code = "bad_request" if status < 500 else "internal_error"
        request_id = make_request_id()
        with naming_request(request_id):
            document = error_body(LlameroError(status, code, body), self.uri)
        headers = [
            (b"Content-Type", b"application/json"),
            (b"X-Content-Type-Options", b"nosniff"),
            (b"X-Request-Id", request_id.encode()),
        ]
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": document})

    def _target(self) -> bytes:
        """Give the path; while a request is read its channel knows the address."""
        return path_of(self.channel._path).partition(b"?")[0]

    def _most_file_bytes(self) -> int:
        """Tell how much may come of a file; 0 where none comes."""
        command, target = self.channel._command, self._target()
        if command == b"POST" and target == _UPLOAD:
            return self.max_upload_bytes
        if command == b"PATCH" and target.startswith(_CHUNK):
            return self.max_chunk_bytes
        return 0

    def _is_for_nobody(self) -> bool:
        """Tell whether a piece comes for an upload of a name that we never gave."""
        target = self._target()
        if self.channel._command != b"PATCH" or not target.startswith(_CHUNK):
            return False
        return not is_incoming_id(target.removeprefix(_CHUNK).decode("latin-1"))

    def _refuse_size(self) -> None:
        message = f"Request body is larger than {self._most_bytes} bytes."
        self._refuse(413, message, "request_too_large")

    def _refuse(self, status: int, message: str, code: str) -> None:
        """Answer at once, and take in no more."""
        self.is_refused = True
        self.content.close()
        refuse(self.channel, status, message, code, self._cross_origin_headers())

    def _cross_origin_headers(self) -> list[tuple[str, str]]:
        """Let a page that may call this site read why it is refused."""
        origin = self.getHeader("origin")
        if origin not in self.allowed_origins:
            return []
        return [
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Expose-Headers", REQUEST_ID_HEADER),
            ("Vary", "Origin"),
        ]
