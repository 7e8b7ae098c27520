"""Does the control worker hear its tasks? Whether it takes them, not whether it is connected."""

import time
from collections.abc import Callable
from typing import Any

from celery.signals import task_postrun, task_prerun

from inference.relay.connect import SyncRedis

# Connections that broke without a word are noticed and made anew by then.
DEAF_SECONDS = 60.0


class TaskWatch:
    """Counts tasks by Celery's signals; ``look`` is a step of the control loop."""

    def __init__(
        self, queue: str, num_threads: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._queue = queue
        self._num_threads = num_threads
        self._num_running = 0
        self._num_heard = 0
        self._seen = 0
        self._heard_at = self._clock()
        task_prerun.connect(self._on_begin, weak=False)
        task_postrun.connect(self._on_end, weak=False)

    def look(self, redis: SyncRedis) -> None:
        """Compare what was taken with what waits."""
        is_busy = self._num_running >= self._num_threads
        if self._num_heard != self._seen or is_busy or not redis.llen(self._queue):
            self._seen, self._heard_at = self._num_heard, self._clock()

    def judge(self) -> str:
        """Say so if tasks wait, threads are free, and none is taken."""
        age = self._clock() - self._heard_at
        return f"tasks wait, and none was taken for {age:.0f} s" if age > DEAF_SECONDS else ""

    def _on_begin(self, **_: Any) -> None:
        self._num_heard += 1
        self._num_running += 1

    def _on_end(self, **_: Any) -> None:
        self._num_running -= 1
