"""Which jobs the server believes a replica runs, and how others get those it cannot finish."""

from collections.abc import Iterable

from inference.relay.connect import SyncRedis, text_of
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

    def hand_back(self, jobs: Iterable[str]) -> tuple[str, ...]:
        """Queue jobs again, to go on after their last event; gives those that still ran here.

        Nothing this replica writes of them from now on is accepted.
        """
        given = script("hand_back").run(self._redis, (self._replica, *jobs))
        return tuple(text_of(job) for job in given)
