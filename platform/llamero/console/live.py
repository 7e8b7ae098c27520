"""How the deployments and nodes are doing right now, from their heartbeats."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from django.conf import settings
from redis.exceptions import RedisError

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaState, ReplicaStatus
from inference.relay.connect import SyncRedis, connect
from inference.relay.desired import DesiredState
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import waiting_counts

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Load:
    """What replicas do, all together. The mean batch is since they loaded.

    ``first_tokens`` are the times to the first token of the latest jobs, sorted.
    """

    num_ready: int = 0
    num_slots: int = 0
    num_running: int = 0
    num_waiting: int = 0
    num_tokens: int = 0
    mean_batch: float = 0.0
    kv_used: int = 0
    kv_total: int = 0
    memory_bytes: int = 0
    progress: float = 0.0
    first_tokens: tuple[float, ...] = ()

    def first_token_percentile(self, share: float) -> float | None:
        """Give what this share of the latest first tokens did not exceed; None without any."""
        times = self.first_tokens
        return times[int(share * (len(times) - 1))] if times else None


@dataclass(frozen=True, slots=True)
class Live:
    """The last heartbeats of all replicas and nodes, and how many jobs wait where."""

    statuses: tuple[ReplicaStatus, ...] = ()
    waiting: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[NodeStatus, ...] = ()

    def replicas_of(self, deployment: str) -> list[ReplicaStatus]:
        """Give the heartbeats of one deployment's replicas."""
        return [status for status in self.statuses if status.deployment == deployment]

    def load_of(self, deployment: str) -> Load:
        """Give the load of a deployment; zeros for one that does nothing."""
        return sum_up(self.replicas_of(deployment), self.waiting.get(deployment, 0))

    @property
    def total(self) -> Load:
        """The load of everything."""
        return sum_up(self.statuses, sum(self.waiting.values()))


def read_live() -> Live | None:
    """Ask the Redis-protocol server; None while it cannot be reached."""
    redis = _client()
    try:
        return Live(
            ReplicaRegistry(redis).list(), waiting_counts(redis), DesiredState(redis).nodes()
        )
    except (RedisError, OSError):
        logger.warning("The Redis-protocol server cannot be reached")
        return None


def sum_up(statuses: Sequence[ReplicaStatus], num_waiting: int) -> Load:
    """Add up some replicas, and what waits for them."""
    stats = [status.stats for status in statuses]
    num_steps = sum(one.num_decode_steps for one in stats)
    num_sequences = sum(one.num_batch_sequences for one in stats)
    ready = [status for status in statuses if status.state is ReplicaState.READY]
    return Load(
        num_ready=len(ready),
        num_slots=sum(status.num_slots for status in ready),
        num_running=sum(one.num_running for one in stats),
        num_waiting=num_waiting + sum(one.num_waiting for one in stats),
        num_tokens=sum(one.num_decoded_tokens for one in stats),
        mean_batch=num_sequences / num_steps if num_steps else 0.0,
        kv_used=sum(one.kv_cells_used for one in stats),
        kv_total=sum(one.kv_cells_total for one in stats),
        memory_bytes=sum(status.memory_bytes for status in statuses),
        progress=min((status.progress for status in statuses), default=0.0),
        first_tokens=_merge(status.first_token_seconds for status in statuses),
    )


def _merge(times: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(sorted(seconds for each in times for seconds in each))


@cache
def _client() -> SyncRedis:
    return connect(settings.REDIS_URL)
