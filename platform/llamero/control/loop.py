"""The control loop: a thread that reconciles and reaps each second, whatever goes wrong."""

import logging
import threading
from collections.abc import Callable, Sequence

from django.db import connections
from kombu.exceptions import OperationalError as BrokerError

from inference.health.progress import Check, Progress
from inference.relay.connect import UNREACHABLE, RedisError, SyncRedis

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0
# A round waits for a database that locks, and for brokers that do not answer, some seconds each.
STUCK_SECONDS = 120.0
Step = Callable[[SyncRedis], None]


class ControlLoop:
    """Runs its steps in order, once a period. Several loops at once do no harm, only work.

    Those of one process have names, by which their checks and threads differ.
    """

    def __init__(self, redis: SyncRedis, steps: Sequence[Step], name: str = "") -> None:
        self._redis = redis
        self._steps = steps
        self._stop = threading.Event()
        self._progress = Progress()
        self._failed: tuple[str, ...] = ()
        loop, checks = (f"{name}-loop", f"{name}-steps") if name else ("loop", "steps")
        self.live: dict[str, Check] = {loop: self._progress.within("loop", STUCK_SECONDS)}
        self.ready: dict[str, Check] = {checks: self._judge_steps}
        thread = f"{name or 'control'}-loop"
        self._thread = threading.Thread(target=self._run, name=thread, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the step at work."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def run_once(self) -> None:
        """Take every step; one that fails is logged and does not keep the next from running."""
        failed = []
        for step in self._steps:
            try:
                step(self._redis)
            except (*UNREACHABLE, RedisError, BrokerError) as error:
                failed.append(step.__name__)
                logger.warning("%s: the broker does not answer: %s", step.__name__, error)
            except Exception:
                failed.append(step.__name__)
                logger.exception("%s failed", step.__name__)
                # Whatever state the database connection is in, the next round opens a new one.
                connections.close_all()
        self._failed = tuple(failed)
        self._progress.note("loop")

    def _judge_steps(self) -> str:
        """Say which steps of the last round failed."""
        return f"failed: {', '.join(self._failed)}" if self._failed else ""

    def _run(self) -> None:
        while not self._stop.is_set():
            self.run_once()
            self._stop.wait(PERIOD_SECONDS)
        connections.close_all()
