"""What was looked up a moment ago: a small cache per process whose entries die young."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ExpiringCache(Generic[Value]):
    """Keep values for ``lifetime_seconds``; safe between threads, emptied when it is full.

    Staleness is bounded by the lifetime, in every process, without any message between them.
    """

    def __init__(
        self,
        lifetime_seconds: float,
        max_entries: int = 4096,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lifetime = lifetime_seconds
        self._max_entries = max_entries
        self._clock = clock
        self._entries: dict[str, tuple[float, Value]] = {}

    def get(self, key: str) -> Value | None:
        """Give the value while it is fresh."""
        entry = self._entries.get(key)
        if entry is None or entry[0] <= self._clock():
            return None
        return entry[1]

    def put(self, key: str, value: Value) -> None:
        """Remember a value from now on."""
        if len(self._entries) >= self._max_entries:
            self._entries.clear()
        self._entries[key] = (self._clock() + self._lifetime, value)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
