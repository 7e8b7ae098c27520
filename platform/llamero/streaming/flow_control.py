"""Who does not read, or sends too much: bounded buffering, then the socket is closed."""

import logging
from typing import Any

from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer  # type: ignore[import-untyped]

logger = logging.getLogger(__name__)

MAX_UNREAD_BYTES = 1024 * 1024
TOO_BIG, TRY_AGAIN_LATER = 1009, 1013
SECONDS_TO_READ_ON = 10
"""How long a closed reader may take to read what lies before the close frame."""
SECONDS_TO_SEND_ON = 2
"""How long who sent too much may go on, so that they read why before a reset."""


@implementer(IPushProducer)
class _Meter:
    """Told by the transport when its send buffer is full, and when it has drained."""

    def __init__(self) -> None:
        self.is_full = False
        self.num_unread_bytes = 0

    def pauseProducing(self) -> None:
        self.is_full = True

    def resumeProducing(self) -> None:
        self.is_full = False
        self.num_unread_bytes = 0

    def stopProducing(self) -> None:
        self.resumeProducing()


class BoundedWebSocketProtocol(WebSocketProtocol):  # type: ignore[misc]
    """Daphne's protocol, closing with 1013 a socket that leaves 1 MiB unread.

    A message that is too large ends it with 1009; autobahn would drop the line without a word.

    The consumer hears of the close at once, before the transport has given the peer up.
    """

    muted = False

    def onOpen(self) -> None:
        """Take the transport's flow control over from the HTTP channel, which would stop reads."""
        super().onOpen()
        self._meter = _Meter()
        self.transport.unregisterProducer()
        self.transport.registerProducer(self._meter, True)

    def serverSend(self, content: Any, binary: bool = False) -> None:
        """Send a frame, unless the reader has left too much unread, or has left.

        What is left over of an answer then is no error: the consumer hears of the end in a moment.
        """
        if self.muted or self.state in (self.STATE_CLOSING, self.STATE_CLOSED):
            return
        super().serverSend(content, binary)
        meter = getattr(self, "_meter", None)
        if meter is None or not meter.is_full:
            return
        meter.num_unread_bytes += len(content)
        if meter.num_unread_bytes > MAX_UNREAD_BYTES:
            logger.warning("Closing a WebSocket that left %d bytes unread", MAX_UNREAD_BYTES)
            self._give_up(TRY_AGAIN_LATER, SECONDS_TO_READ_ON)

    def _max_message_size_exceeded(self, msg_size: int, max_msg_size: int, reason: str) -> None:
        self.failedByMe = True  # what else comes is read, and dropped
        self._give_up(TOO_BIG, SECONDS_TO_SEND_ON)

    def _give_up(self, code: int, seconds: int) -> None:
        if not self.muted:
            self.application_queue.put_nowait({"type": "websocket.disconnect", "code": code})
        self.muted = True
        self.closeHandshakeTimeout = seconds
        # sendClose takes codes for applications only, and these are for servers.
        self.sendCloseFrame(code=code)
