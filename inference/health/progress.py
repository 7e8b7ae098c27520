"""Does what should go on go on? When each thing was last done, and how long ago that may be."""

import time
from collections.abc import Callable

Check = Callable[[], str]
"""Gives what is wrong, or nothing."""


class Progress:
    """Marks that threads set when they have done something, read by any other."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._done_at: dict[str, float] = {}

    def note(self, name: str) -> None:
        """Note that something was done now."""
        self._done_at[name] = self._clock()

    def within(self, name: str, seconds: float) -> Check:
        """Give a check that something is done at least that often; it begins to count now."""
        self._done_at.setdefault(name, self._clock())

        def check() -> str:
            age = self._clock() - self._done_at[name]
            return f"not done for {age:.0f} s" if age > seconds else ""

        return check
