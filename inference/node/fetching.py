"""One file from the control plane: piece by piece, resumed where it broke off, verified."""

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 1 << 20
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})\Z")
_REFUSALS = {
    401: "the control plane does not accept this node's token",
    404: "the control plane has no such file",
}


class FetchError(Exception):
    """A file could not be fetched now. Its text is for the operator."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of a file is there."""

    num_bytes: int
    total_bytes: int

    @property
    def share(self) -> float:
        """The same from 0 to 1."""
        return self.num_bytes / self.total_bytes if self.total_bytes else 1.0


class ControlPlane:
    """The control plane as a source of files, over one connection of one thread."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("LLAMERO_CONTROL_URL must be an address like https://example.org")
        self._parts = parts
        self._token = token
        self._connection: HTTPConnection | None = None

    def fetch(
        self,
        sha256: str,
        partial: Path,
        *,
        make_room: Callable[[int], None],
        note: Callable[[Progress], None],
    ) -> None:
        """Gather the file of this hash in ``partial``, after what is there of it already.

        ``make_room`` is told how many bytes are to come. Raises FetchError; what came stays for
        the next try, unless it was wrong.
        """
        with partial.open("a+b") as file:
            digest = hashlib.sha256()
            file.seek(0)
            size, total = _copy(file, digest.update), -1
            while size != total:
                response, now_total = self._ask(sha256, size)
                if total == -1:
                    self._prepare(make_room, now_total - size)
                total = now_total
                size = self._take(response, size, total, file, digest.update, note)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != sha256:
            partial.unlink()
            raise FetchError("what was fetched is not the registered file: its SHA-256 differs")

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _prepare(self, make_room: Callable[[int], None], num_bytes: int) -> None:
        try:
            make_room(num_bytes)
        except Exception:
            self.close()  # an answer that is not read would be in the way of the next
            raise

    def _ask(self, sha256: str, start: int) -> tuple[HTTPResponse, int]:
        """Ask for what follows ``start``; gives the answer, and the size of the whole file."""
        path = f"{self._parts.path.rstrip('/')}/nodes/files/{sha256}"
        headers = {"Authorization": f"Bearer {self._token}", "Range": f"bytes={start}-"}
        try:
            connection = self._connect()
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
        except (OSError, HTTPException) as error:
            raise self._break_off(error) from error
        if response.status == 416 and (size := response.headers.get("Content-Range", "")):
            response.read()
            if size == f"bytes */{start}":
                return response, start
        found = _CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
        if response.status != 206 or found is None or int(found[1]) != start:
            self.close()
            unknown = f"the control plane answered {response.status}"
            raise FetchError(_REFUSALS.get(response.status, unknown))
        return response, int(found[2])

    def _take(
        self,
        response: HTTPResponse,
        size: int,
        total: int,
        file: BinaryIO,
        hash_chunk: Callable[[bytes], None],
        note: Callable[[Progress], None],
    ) -> int:
        """Write a piece; gives the size that the file has then."""
        while True:
            try:
                chunk = response.read(_CHUNK_BYTES)
            except (OSError, HTTPException) as error:
                raise self._break_off(error) from error
            if not chunk:
                return size
            file.write(chunk)
            hash_chunk(chunk)
            size += len(chunk)
            note(Progress(size, total))

    def _connect(self) -> HTTPConnection:
        if self._connection is None:
            kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
            host = self._parts.hostname or ""
            self._connection = kind(host, self._parts.port, timeout=TIMEOUT_SECONDS)
        return self._connection

    def _break_off(self, error: Exception) -> FetchError:
        self.close()
        return FetchError(f"the control plane is out of reach: {error or type(error).__name__}")


def _copy(file: BinaryIO, hash_chunk: Callable[[bytes], None]) -> int:
    """Hash what a file holds; gives its size."""
    while chunk := file.read(_CHUNK_BYTES):
        hash_chunk(chunk)
    return file.tell()
