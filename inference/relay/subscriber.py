"""How a gateway hears its events: one subscription, rebuilt whenever the link breaks."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
from redis.exceptions import ConnectionError as RedisConnectionError

from inference.protocol.text import TextReply
from inference.relay.connect import UNREACHABLE, AsyncRedis
from inference.relay.frames import EventFrame, decode_message
from inference.relay.keys import gateway_channel

logger = logging.getLogger(__name__)
PING_SECONDS = 3.0
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0


class Subscriber:
    """Hands each message to ``on_message`` in the event loop, as long as ``run`` runs.

    ``on_link`` is called after each (re)subscription: messages sent before it may be missing.
    """

    def __init__(
        self,
        redis: AsyncRedis,
        gateway: str,
        on_message: Callable[[list[EventFrame] | TextReply], None],
        on_link: Callable[[], None],
    ) -> None:
        self._redis = redis
        self._channel = gateway_channel(gateway)
        self._on_message = on_message
        self._on_link = on_link
        self.is_linked = asyncio.Event()

    async def run(self) -> None:
        """Listen until cancelled, then close the connections."""
        pause = FIRST_PAUSE_SECONDS
        try:
            while True:
                try:
                    await self._listen()
                except UNREACHABLE as error:
                    if self.is_linked.is_set():
                        logger.warning("the event link broke: %s", error)
                        pause = FIRST_PAUSE_SECONDS
                    self.is_linked.clear()
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
        finally:
            await self._redis.aclose()

    async def _listen(self) -> None:
        untyped: Any = self._redis
        async with untyped.pubsub() as pubsub:
            await pubsub.subscribe(self._channel)
            is_pinged = False
            while True:
                message = await pubsub.get_message(timeout=PING_SECONDS)
                if message is None:
                    # Silence: a live server answers a ping, a dead or paused one does not.
                    if is_pinged:
                        raise RedisConnectionError("no answer to a ping")
                    await pubsub.ping()
                    is_pinged = True
                    continue
                is_pinged = False
                if message["type"] == "message":
                    self._deliver(message["data"])
                elif message["type"] == "subscribe":
                    self.is_linked.set()
                    self._on_link()

    def _deliver(self, raw: bytes) -> None:
        try:
            message = decode_message(raw)
        except msgspec.DecodeError as error:
            # The stream keeps the events; they are read again when the gap shows.
            logger.error("a message on the event link cannot be read: %s", error)
            return
        self._on_message(message)
