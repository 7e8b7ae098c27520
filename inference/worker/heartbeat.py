"""How a replica shows each second that it lives, and finds jobs it never heard of."""

import logging
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from inference.protocol.replicas import ReplicaStatus
from inference.relay.connect import RedisError
from inference.relay.registry import ReplicaRegistry

logger = logging.getLogger(__name__)
BEAT_SECONDS = 1.0
STRAY_BEATS = 3
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Heartbeat:
    """A thread that writes the replica's status each second, then calls ``after_beat``."""

    def __init__(self, registry: ReplicaRegistry, describe: Callable[[], ReplicaStatus]) -> None:
        self._registry = registry
        self._describe = describe
        self._after_beat: list[Callable[[], None]] = []
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Write a last status and end the thread."""
        self._is_stopping = True
        self._wake.set()
        self._thread.join(timeout=2.0)

    def beat_now(self) -> None:
        """Show a change at once."""
        self._wake.set()

    def after_beat(self, act: Callable[[], None]) -> None:
        """Have something done after each beat that reached the server."""
        self._after_beat.append(act)

    def _run(self) -> None:
        while True:
            is_last = self._is_stopping
            self._beat()
            if is_last:
                return
            self._wake.wait(BEAT_SECONDS)
            self._wake.clear()

    def _beat(self) -> None:
        try:
            self._registry.beat(self._describe())
            for act in self._after_beat:
                act()
        except (RedisError, OSError) as error:
            logger.warning("the heartbeat did not reach the server: %s", error)


class StrayJobs:
    """Finds jobs that the server gave to this replica, but whose answer never arrived."""

    def __init__(self) -> None:
        self._num_beats: dict[str, int] = {}

    def find(self, running: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
        """Give the jobs that were unknown here for three beats in a row."""
        unknown = set(running) - set(known)
        self._num_beats = {job: self._num_beats.get(job, 0) + 1 for job in unknown}
        return tuple(job for job, beats in self._num_beats.items() if beats >= STRAY_BEATS)


def resident_bytes() -> int:
    """Give the memory of this process, mapped model pages included; 0 where unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
