"""GET /nodes/files/<sha256>: a piece of a stored model file, for worker machines."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from inference.gguf.examine import open_regular
from inference.gguf.verdict import GgufRejected
from llamero.accounts.authentication import read_key
from llamero.api.async_view import AsyncAPIView
from llamero.control.models import NodeToken
from llamero.control.node_tokens import find_node_token
from llamero.errors import InvalidValue, LlameroError
from models_registry.models import ModelFile

# The web server queues an answer in memory, however slowly it is read: so answers are bounded.
MAX_PIECE_BYTES = 8 << 20
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})\Z")
# Few, and apart from those of requests: a slow disk must hold up no answer to a client.
_readers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="file-pieces")


@dataclass(frozen=True, slots=True)
class NodeCaller:
    """A machine that showed a good token."""

    token: NodeToken
    is_authenticated: bool = True


class NodeTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer lln_…``; all failures look the same, and API keys are one."""

    def authenticate(self, request: Request) -> tuple[NodeCaller, NodeToken]:
        """Give the machine, or refuse."""
        token = find_node_token(read_key(request))
        if token is None:
            raise AuthenticationFailed("No valid node token was given.", "invalid_node_token")
        return NodeCaller(token), token

    def authenticate_header(self, request: Request) -> str:
        """Ask for a bearer token."""
        return "Bearer"


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file, from ``start`` up to and without ``end``."""

    path: Path
    size_bytes: int
    start: int
    end: int

    def read(self) -> bytes:
        """Read it; raises LlameroError where the store has lost it."""
        try:
            with open_regular(self.path) as fd:
                data = os.pread(fd, self.end - self.start, self.start)
        except (GgufRejected, OSError):
            raise _missing() from None
        if len(data) != self.end - self.start:
            raise _missing()
        return data


class FilePieceView(AsyncAPIView):
    """Give at most 8 MiB of a file at once, from any place on: a broken fetch is resumed.

    Only blobs of the store have an address here: a file is found by its row, and its path is made
    from its hash alone.
    """

    authentication_classes = (NodeTokenAuthentication,)

    def prepare(self, request: Request) -> None:
        """Find the file and the range."""
        file = ModelFile.objects.filter(sha256=self.kwargs["sha256"]).first()
        if file is None:
            raise _missing()
        self.piece = _read_range(request.META.get("HTTP_RANGE", ""), file)

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Send the piece."""
        piece = self.piece
        if piece.start >= piece.size_bytes:
            response = HttpResponse(status=416, content_type="application/json")
            response["Content-Range"] = f"bytes */{piece.size_bytes}"
            return response
        data = await sync_to_async(piece.read, thread_sensitive=False, executor=_readers)()
        response = HttpResponse(data, status=206, content_type="application/octet-stream")
        response["Content-Range"] = f"bytes {piece.start}-{piece.end - 1}/{piece.size_bytes}"
        response["Accept-Ranges"] = "bytes"
        return response


def _read_range(header: str, file: ModelFile) -> Piece:
    match = _RANGE.match(header.strip())
    if match is None:
        message = "Ask for a range: Range: bytes=0- gives the first piece."
        raise InvalidValue("Range", message, "range_required")
    start = int(match[1])
    last = int(match[2]) if match[2] else file.size_bytes - 1
    if last < start and match[2]:
        raise InvalidValue("Range", "The range ends before it begins.")
    end = min(last + 1, file.size_bytes, start + MAX_PIECE_BYTES)
    return Piece(file.path, file.size_bytes, start, end)


def _missing() -> LlameroError:
    return LlameroError(404, "file_not_found", "There is no such file in the store.")
