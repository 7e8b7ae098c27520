"""What was looked up a moment ago: a small cache per process whose entries die young."""

import logging
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError

logger = logging.getLogger(__name__)

# What a database that is down, restarting, locked or cut off looks like.
OUTAGES = (OperationalError, InterfaceError)
Value = TypeVar("Value")


class _Entry(NamedTuple, Generic[Value]):
    fresh_until: float
    read_at: float
    value: Value


class ExpiringCache(Generic[Value]):
    """Keep values for ``lifetime_seconds``; safe between threads, emptied when it is full.

    Staleness is bounded by the lifetime, in every process, without any message between them. While
    the database is out of reach, what ``recall`` knew last counts for ``OUTAGE_SECONDS`` more.
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
        self._entries: dict[str, _Entry[Value]] = {}

    def get(self, key: str) -> Value | None:
        """Give the value while it is fresh."""
        entry = self._entries.get(key)
        if entry is None or entry.fresh_until <= self._clock():
            return None
        return entry.value

    def recall(self, key: str, read: Callable[[], Value | None]) -> Value | None:
        """Give the value while it is fresh, else read it; None is not kept."""
        known = self.get(key)
        if known is not None:
            return known
        try:
            found = read()
        except OUTAGES as error:
            return self._outlive(key, error)
        if found is not None:
            self.put(key, found)
        else:
            self._entries.pop(key, None)
        return found

    def _outlive(self, key: str, error: Exception) -> Value:
        """Give what was known last, for a lifetime more, so that not every call asks in vain."""
        entry = self._entries.get(key)
        now = self._clock()
        if entry is None or now - entry.read_at > self._lifetime + settings.OUTAGE_SECONDS:
            raise error
        logger.warning("The database is out of reach, what was known counts: %s", error)
        self._entries[key] = _Entry(now + self._lifetime, entry.read_at, entry.value)
        return entry.value

    def put(self, key: str, value: Value) -> None:
        """Remember a value from now on."""
        if len(self._entries) >= self._max_entries:
            self._entries.clear()
        now = self._clock()
        self._entries[key] = _Entry(now + self._lifetime, now, value)

    def doubt(self, is_meant: Callable[[Value], bool]) -> None:
        """Have the values that are meant read again; in an outage they go on to count."""
        now = self._clock()
        for key, entry in tuple(self._entries.items()):
            if is_meant(entry.value):
                self._entries[key] = entry._replace(fresh_until=now)

    def forget(self, is_meant: Callable[[Value], bool]) -> None:
        """Forget the values that are meant."""
        for key, entry in tuple(self._entries.items()):
            if is_meant(entry.value):
                self._entries.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
