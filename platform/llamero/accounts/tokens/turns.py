"""One thread at a time asks a server; few wait for it: threads are needed by others."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock


class Turns:
    """The turn to ask, and the places of those who ask or wait for it."""

    def __init__(self, num_places: int) -> None:
        self._turn, self._places = Lock(), BoundedSemaphore(num_places)

    @property
    def is_taken(self) -> bool:
        """Whether somebody asks now."""
        return self._turn.locked()

    @contextmanager
    def taken(self, wait_seconds: float) -> Iterator[bool]:
        """Have the turn inside; gives whether it came: not where no place is free, or too late."""
        if not self._places.acquire(blocking=False):
            yield False
            return
        try:
            if not self._turn.acquire(timeout=wait_seconds):
                yield False
                return
            try:
                yield True
            finally:
                self._turn.release()
        finally:
            self._places.release()
