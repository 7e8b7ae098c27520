"""How a gateway hears its events: one subscription, rebuilt whenever the link breaks."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from inference.protocol.text import TextReply
from inference.relay.frames import EventFrame, decode_message
from inference.relay.keys import gateway_channel
from inference.relay.rights import RIGHTS_CHANNEL, read_owners
from inference.relay.wire import Wire, open_wire

logger = logging.getLogger(__name__)
PING_SECONDS = 3.0
CONNECT_SECONDS = 1.0
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0


class Subscriber:
    """Hands each message to ``on_message`` in the event loop, as long as ``run`` runs.

    ``on_link`` is called after each (re)subscription: messages sent before it may be missing.
    ``on_rights`` is called with owners whose rights have changed.
    """

    def __init__(
        self,
        url: str,
        gateway: str,
        on_message: Callable[[list[EventFrame] | TextReply], None],
        on_link: Callable[[], None],
        on_rights: Callable[[frozenset[str]], None],
    ) -> None:
        self._url = url
        self._channel = gateway_channel(gateway)
        self._on_message = on_message
        self._on_link = on_link
        self._on_rights = on_rights
        self.is_linked = asyncio.Event()

    async def run(self) -> None:
        """Listen until cancelled."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    wire = await open_wire(self._url, self._hear)
            except (OSError, TimeoutError):
                pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
            else:
                await self._attend(wire)
                pause = FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)

    async def _attend(self, wire: Wire) -> None:
        """Subscribe, then stay until the link breaks. Silence is tested with a ping."""
        try:
            # The gateway's own comes last: when that is confirmed, so is the other.
            wire.send("SUBSCRIBE", RIGHTS_CHANNEL, self._channel)
            num_heard = -1
            while not wire.closed.done():
                await asyncio.wait((wire.closed,), timeout=PING_SECONDS)
                if wire.num_heard == num_heard:
                    break
                num_heard = wire.num_heard
                wire.send("PING")
            if self.is_linked.is_set():
                logger.warning("the event link broke")
        finally:
            self.is_linked.clear()
            wire.close()

    def _hear(self, reply: object) -> None:
        match reply:
            case [b"message", channel, bytes(raw)]:
                self._deliver(channel, raw)
            case [b"subscribe", channel, _] if channel == self._channel.encode():
                self.is_linked.set()
                self._on_link()
            case Exception():
                logger.error("the event link was refused: %s", reply)

    def _deliver(self, channel: object, raw: bytes) -> None:
        try:
            if channel == RIGHTS_CHANNEL.encode():
                self._on_rights(read_owners(raw))
                return
            message = decode_message(raw)
        except msgspec.DecodeError as error:
            # The stream keeps the events; they are read again when the gap shows.
            logger.error("a message on the event link cannot be read: %s", error)
            return
        self._on_message(message)
