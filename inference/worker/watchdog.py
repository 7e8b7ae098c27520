"""Does the replica make progress? Not whether it answers: whether work moves on."""

import time
from collections.abc import Callable
from dataclasses import dataclass

# Of one core. Little, since a busy machine may have no more for a step; idle threads take less.
BUSY_SHARE = 0.05
DEAF_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds without a step until a replica counts as stalled, and until it is ended."""

    stalled: float
    wedged: float


# A process that computes nothing has no excuse; a large prompt on slow cores takes its time.
IDLE_PATIENCE = Patience(stalled=4.0, wedged=30.0)
BUSY_PATIENCE = Patience(stalled=60.0, wedged=300.0)


@dataclass(frozen=True, slots=True)
class Standstill:
    """For how long the engine has had jobs without a step, and what to make of it."""

    seconds: float = 0.0
    is_stalled: bool = False
    is_wedged: bool = False


class EngineWatch:
    """Judges the engine by its count of steps: a thread that died or hangs makes none."""

    def __init__(
        self,
        count_steps: Callable[[], int],
        has_work: Callable[[], bool],
        cpu_seconds: Callable[[], float] = time.process_time,
    ) -> None:
        self._count_steps = count_steps
        self._has_work = has_work
        self._cpu_seconds = cpu_seconds
        self._num_steps = -1
        self._moved_at = 0.0
        self._cpu_at_move = 0.0

    def check(self, now: float) -> Standstill:
        """Look at the engine; ``now`` is monotonic."""
        num_steps = self._count_steps()
        if num_steps != self._num_steps or not self._has_work():
            self._num_steps = num_steps
            self._moved_at, self._cpu_at_move = now, self._cpu_seconds()
            return Standstill()
        seconds = now - self._moved_at
        is_busy = self._cpu_seconds() - self._cpu_at_move > seconds * BUSY_SHARE
        patience = BUSY_PATIENCE if is_busy else IDLE_PATIENCE
        return Standstill(seconds, seconds > patience.stalled, seconds > patience.wedged)


class TicketWatch:
    """Judges the ticket consumer: deaf when tickets lie in the queue and free slots get none."""

    def __init__(
        self,
        count_used: Callable[[], int],
        has_free_slot: Callable[[], bool],
        count_queued: Callable[[], int],
    ) -> None:
        self._count_used = count_used
        self._has_free_slot = has_free_slot
        self._count_queued = count_queued
        self._num_used = -1
        self._heard_at = 0.0

    def is_deaf(self, now: float) -> bool:
        """Look at the queue; ``now`` is monotonic."""
        num_used = self._count_used()
        if num_used != self._num_used or not self._has_free_slot() or not self._count_queued():
            self._num_used, self._heard_at = num_used, now
        return now - self._heard_at > DEAF_SECONDS
