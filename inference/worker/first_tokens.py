"""How long jobs of late took from the queue to their first token."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 30.0
MAX_SAMPLES = 256
SHARE = 0.9
NUM_TOLD = 64


class FirstTokens:
    """Keeps the times of the last half minute; noted by one thread, read by another."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, float]] = deque(maxlen=MAX_SAMPLES)

    def note(self, seconds: float) -> None:
        """Note one job's time to its first token."""
        self._samples.append((self._clock(), seconds))

    def typical(self) -> float:
        """Give what nine of ten jobs did not exceed; 0 where there were none."""
        recent = sorted(self._recent())
        return recent[int(SHARE * (len(recent) - 1))] if recent else 0.0

    def latest(self) -> tuple[float, ...]:
        """Give the times of the latest jobs, in milliseconds' steps."""
        return tuple(round(seconds, 3) for seconds in self._recent()[-NUM_TOLD:])

    def _recent(self) -> list[float]:
        oldest = self._clock() - WINDOW_SECONDS
        return [seconds for at, seconds in tuple(self._samples) if at >= oldest]
