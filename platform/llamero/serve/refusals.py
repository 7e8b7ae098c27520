"""Answers of the server itself, in the API's error shape, before any application is asked."""

import json
import logging
from typing import Any

from twisted.internet import reactor

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


def refuse(channel: Any, status: int, message: str, code: str) -> None:
    """Answer at once and drop the connection soon; the caller takes in no more."""
    body = error_body(message, "invalid_request_error", code)
    logger.info("refused a request with %d", status)
    channel.transport.write(
        b"HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (status, STATUS_WORDS[status], len(body), body)
    )
    channel.setTimeout(None)
    reactor.callLater(LINGER_SECONDS, channel.transport.abortConnection)
