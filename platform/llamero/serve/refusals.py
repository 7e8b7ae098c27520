"""Answers of the server itself, in the API's error shape, before any application is asked."""

import json
import logging
from collections.abc import Iterable
from typing import Any

from twisted.internet import reactor

from llamero.request_ids import make_request_id

logger = logging.getLogger(__name__)

# A refused client may go on sending this long, so that it reads the answer before a reset.
LINGER_SECONDS = 2
STATUS_WORDS = {
    400: b"Bad Request",
    408: b"Request Timeout",
    413: b"Content Too Large",
    431: b"Request Header Fields Too Large",
}


def error_body(message: str, kind: str, code: str) -> bytes:
    """Give an error in the shape that OpenAI's clients read."""
    error = {"message": message, "type": kind, "param": None, "code": code}
    return json.dumps({"error": error}).encode()


def refuse(
    channel: Any, status: int, message: str, code: str, headers: Iterable[tuple[str, str]] = ()
) -> None:
    """Answer at once and drop the connection soon; the caller takes in no more."""
    body = error_body(message, "invalid_request_error", code)
    request_id = make_request_id()
    logger.info("refused a request with %d (%s)", status, request_id)
    fields = (
        ("Connection", "close"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("X-Request-Id", request_id),
        *headers,
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    status_line = b"HTTP/1.1 %d %s\r\n" % (status, STATUS_WORDS[status])
    channel.transport.write(status_line + head.encode("latin-1") + b"\r\n" + body)
    channel.setTimeout(None)
    reactor.callLater(LINGER_SECONDS, channel.transport.abortConnection)
