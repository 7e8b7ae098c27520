"""Streamed bytes straight to the socket: half of what a token costs is not to queue it."""

import logging
from typing import Any

from daphne.http_protocol import WebRequest
from twisted.internet.tcp import Connection

logger = logging.getLogger(__name__)

# What a client may leave unread before it is given up.
MAX_UNREAD_BYTES = 2**20


class DirectRequest(WebRequest):  # type: ignore[misc]
    """A request whose streamed answer is sent at once where the socket takes it.

    Twisted would queue each piece, watch the socket for the next turn of the loop, send, and stop
    watching: two system calls and a callback more. What the socket does not take is queued.
    ``is_file`` is an answer of known length that is made while it is sent.
    """

    is_file = False

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Send a piece of a stream that is under way; leave all else to Daphne."""
        is_piece = message.get("more_body") and self.startedWriting and not self.finished
        if not is_piece or self.channel is None or not self._send_directly(message["body"]):
            super().handle_reply(message)

    @property
    def num_unread(self) -> int:
        """How many bytes wait for the client to take them."""
        transport = getattr(self.channel, "transport", None)
        if not isinstance(transport, Connection):
            return 0
        return int(len(transport.dataBuffer) + transport._tempDataLen)

    def _send_directly(self, body: bytes) -> bool:
        """Send if nothing waits to be sent before it; tell whether that was done."""
        transport = self.channel.transport
        # An empty chunk would end the answer.
        if not body or not isinstance(transport, Connection) or transport.TLS:
            return False
        if num_unread := self.num_unread:
            self._check_reader(transport, num_unread)
            return False
        frame = b"%x\r\n%b\r\n" % (len(body), body) if self.chunked else body
        try:
            num_sent = transport.socket.send(frame)
        except BlockingIOError:
            num_sent = 0
        except OSError:
            # Twisted finds out by itself, and tells everyone.
            return False
        self.sentLength += len(body)
        if num_sent < len(frame):
            transport.write(frame[num_sent:])
        return True

    def _check_reader(self, transport: Any, num_unread: int) -> None:
        """Give up a reader of a stream; an answer of known length is made, and grows no more."""
        if num_unread > MAX_UNREAD_BYTES and not self.responseHeaders.hasHeader(b"content-length"):
            logger.warning("Closing a stream that left %d bytes unread", num_unread)
            transport.abortConnection()
