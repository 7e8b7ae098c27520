"""Which jobs the server believes a replica runs, and how those end that it does not know of."""

from collections.abc import Iterable

from inference.relay.connect import SyncRedis, text_of
from inference.relay.endings import LOST
from inference.relay.keys import running_key
from inference.relay.scripts import script


class RunningJobs:
    """The jobs one replica has taken and not ended, as kept by the server."""

    def __init__(self, redis: SyncRedis, replica: str) -> None:
        self._redis = redis
        self._replica = replica

    def ids(self) -> frozenset[str]:
        """Give the ids of the jobs."""
        members = self._redis.smembers(running_key(self._replica))
        return frozenset(text_of(job) for job in members)

    def fail(self, jobs: Iterable[str]) -> tuple[str, ...]:
        """End jobs as lost, whose answer to a take never arrived; gives those that still ran."""
        failed = script("fail").run(self._redis, (self._replica, LOST, *jobs))
        return tuple(text_of(job) for job in failed)
