"""When a replica that ended may start again: growing pauses, then a circuit that stays open."""

from collections import deque

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
MAX_FAILURES = 5
WINDOW_SECONDS = 300.0


class RestartPolicy:
    """Pauses 1, 2, 4 .. 60 s between tries; gives up after 5 failures within 5 minutes."""

    def __init__(self) -> None:
        self._failures: deque[float] = deque(maxlen=MAX_FAILURES)
        self._next_start = 0.0

    def num_failures(self, now: float) -> int:
        """Count the failures that still count."""
        return sum(now - at <= WINDOW_SECONDS for at in self._failures)

    @property
    def has_given_up(self) -> bool:
        """Whether only a changed spec may start the replica again."""
        full = len(self._failures) == MAX_FAILURES
        return full and self._failures[-1] - self._failures[0] <= WINDOW_SECONDS

    def can_start(self, now: float) -> bool:
        """Whether the pause since the last failure is over."""
        return not self.has_given_up and now >= self._next_start

    def seconds_left(self, now: float) -> float:
        """Tell how long the present pause lasts."""
        return max(0.0, self._next_start - now)

    def forget_last(self) -> None:
        """Take the last failure back: the replica may start at once."""
        self._failures.pop()
        self._next_start = 0.0

    def record_failure(self, now: float) -> None:
        """Count a failure and begin the pause after it; old failures no longer count."""
        while self._failures and now - self._failures[0] > WINDOW_SECONDS:
            self._failures.popleft()
        pause = min(FIRST_PAUSE_SECONDS * 2 ** len(self._failures), LONGEST_PAUSE_SECONDS)
        self._failures.append(now)
        self._next_start = now + pause
