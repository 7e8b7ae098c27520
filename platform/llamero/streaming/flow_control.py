"""What happens to a reader that does not read: bounded buffering, then the socket is closed."""

import logging
from typing import Any

from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer  # type: ignore[import-untyped]

logger = logging.getLogger(__name__)

MAX_UNREAD_BYTES = 1024 * 1024
TRY_AGAIN_LATER = 1013
SECONDS_TO_READ_ON = 10
"""How long a closed reader may take to read what lies before the close frame."""


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

    The consumer hears of the close at once, before the transport has given the peer up.
    """

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
            self._give_up()

    def _give_up(self) -> None:
        logger.warning("Closing a WebSocket that left %d bytes unread", MAX_UNREAD_BYTES)
        self.application_queue.put_nowait({"type": "websocket.disconnect", "code": TRY_AGAIN_LATER})
        self.muted = True
        self.closeHandshakeTimeout = SECONDS_TO_READ_ON
        # sendClose takes codes for applications only, and 1013 is for servers.
        self.sendCloseFrame(code=TRY_AGAIN_LATER)
