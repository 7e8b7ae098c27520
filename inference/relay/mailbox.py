"""How a waiting thread hears of something at once: one channel, read with a timeout."""

import time
from types import TracebackType
from typing import Any, Self

from inference.relay.connect import UNREACHABLE, SyncRedis, text_of
from inference.relay.keys import cancelled_key, inbox_channel, wake_channel


class Mailbox:
    """Listens on one channel from one thread. Messages may be lost: re-read the truth at times."""

    def __init__(self, redis: SyncRedis, channel: str) -> None:
        self._redis = redis
        self._channel = channel
        pubsub: Any = redis.pubsub  # untyped in redis-py
        self._pubsub = pubsub(ignore_subscribe_messages=True)
        self._is_subscribed = False

    def listen(self, timeout: float) -> tuple[str, ...]:
        """Wait up to ``timeout`` seconds (below 5) for messages; a broken link is silence."""
        try:
            if not self._is_subscribed:
                self._pubsub.subscribe(self._channel)
                self._is_subscribed = True
            return self._read(timeout)
        except UNREACHABLE:
            self._is_subscribed = False
            self._pubsub.close()
            time.sleep(min(timeout, 0.2))
            return ()

    def close(self) -> None:
        """Give the connection back."""
        self._pubsub.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, timeout: float) -> tuple[str, ...]:
        """Wait for a first message, then take what else is there."""
        found: list[str] = []
        ends = time.monotonic() + timeout
        while True:
            left = 0.0 if found else ends - time.monotonic()
            if left < 0:
                break
            message = self._pubsub.get_message(timeout=left)
            if message is not None:
                found.append(message["data"].decode())
            elif found:
                break
        return tuple(found)


class CancelInbox(Mailbox):
    """Which running jobs a replica should stop: told at once, and kept until they end."""

    def __init__(self, redis: SyncRedis, replica: str) -> None:
        super().__init__(redis, inbox_channel(replica))
        self._key = cancelled_key(replica)

    def pending(self) -> tuple[str, ...]:
        """Give every job that should stop and has not ended: read it once a second."""
        return tuple(text_of(job) for job in self._redis.smembers(self._key))


class WakeInbox(Mailbox):
    """Tells a node that its desired replicas changed."""

    def __init__(self, redis: SyncRedis, node: str) -> None:
        super().__init__(redis, wake_channel(node))
