"""Answers of the server itself, in the API's error shape, before any application is asked."""

import json
import logging
from collections.abc import Iterable
from typing import Any

from twisted.internet import reactor

from llamero.api.anthropic.errors import anthropic_error
from llamero.api.paths import Dialect, dialect_of
from llamero.errors import LlameroError
from llamero.request_ids import make_request_id, naming_request
from llamero.serve.status_words import status_words

logger = logging.getLogger(__name__)

# A refused client may go on sending this long, so that it reads the answer before a reset.
LINGER_SECONDS = 2.0


def error_body(error: LlameroError, address: bytes) -> bytes:
    """Give an error in the shape that the clients of an address read."""
    if dialect_of(address.partition(b"?")[0].decode("latin-1")) is Dialect.ANTHROPIC:
        return json.dumps(anthropic_error(error)).encode()
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    plain = {"message": error.message, "type": kind, "param": None, "code": error.code}
    return json.dumps({"error": plain}).encode()


def refuse(
    channel: Any, status: int, message: str, code: str, headers: Iterable[tuple[str, str]] = ()
) -> None:
    """Answer at once and drop the connection soon; the caller takes in no more."""
    request_id = make_request_id()
    with naming_request(request_id):
        # The address is missing where not even the first line could be read.
        body = error_body(LlameroError(status, code, message), getattr(channel, "_path", b""))
    logger.info("refused a request with %d (%s)", status, request_id)
    fields = (
        ("Connection", "close"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("X-Request-Id", request_id),
        ("Request-Id", request_id),
        *headers,
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    status_line = b"HTTP/1.1 %d %s\r\n" % (status, status_words(status))
    channel.transport.write(status_line + head.encode("latin-1") + b"\r\n" + body)
    channel.setTimeout(None)
    reactor.callLater(LINGER_SECONDS, channel.transport.abortConnection)
