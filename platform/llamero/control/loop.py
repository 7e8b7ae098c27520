"""The control loop: a thread that reconciles and reaps each second, whatever goes wrong."""

import logging
import threading
from collections.abc import Callable, Sequence

from django.db import connections
from kombu.exceptions import OperationalError as BrokerError

from inference.relay.connect import UNREACHABLE, RedisError, SyncRedis

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 1.0
Step = Callable[[SyncRedis], None]


class ControlLoop:
    """Runs its steps in order, once a period. Several loops at once do no harm, only work."""

    def __init__(self, redis: SyncRedis, steps: Sequence[Step]) -> None:
        self._redis = redis
        self._steps = steps
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control-loop", daemon=True)

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
        for step in self._steps:
            try:
                step(self._redis)
            except (*UNREACHABLE, RedisError, BrokerError) as error:
                logger.warning("%s: the broker does not answer: %s", step.__name__, error)
            except Exception:
                logger.exception("%s failed", step.__name__)
                # Whatever state the database connection is in, the next round opens a new one.
                connections.close_all()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.run_once()
            self._stop.wait(PERIOD_SECONDS)
        connections.close_all()
