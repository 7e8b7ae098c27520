"""How the deployments are doing right now, from the heartbeats of their replicas."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from django.conf import settings
from redis.exceptions import RedisError

from inference.protocol.replicas import EngineStats, ReplicaState, ReplicaStatus
from inference.relay.connect import SyncRedis, connect
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import waiting_counts

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Load:
    """What the replicas of one deployment do. Rates and the mean batch are since they loaded."""

    num_ready: int = 0
    num_slots: int = 0
    num_running: int = 0
    num_waiting: int = 0
    num_tokens: int = 0
    tokens_per_second: float = 0.0
    mean_batch: float = 0.0
    memory_bytes: int = 0
    progress: float = 0.0


@dataclass(frozen=True, slots=True)
class Live:
    """The load of each deployment that has replicas or waiting jobs."""

    loads: dict[str, Load] = field(default_factory=dict)

    def load_of(self, deployment: str) -> Load:
        """Give the load of a deployment; zeros for one that does nothing."""
        return self.loads.get(deployment, Load())


def read_live() -> Live | None:
    """Ask the Redis-protocol server; None while it cannot be reached."""
    try:
        statuses = ReplicaRegistry(_client()).list()
        waiting = waiting_counts(_client())
    except (RedisError, OSError):
        logger.warning("The Redis-protocol server cannot be reached")
        return None
    names = {status.deployment for status in statuses} | set(waiting)
    return Live(
        {
            name: sum_up([one for one in statuses if one.deployment == name], waiting.get(name, 0))
            for name in names
        }
    )


def sum_up(statuses: Sequence[ReplicaStatus], num_waiting: int) -> Load:
    """Add up the replicas of one deployment."""
    stats = [status.stats for status in statuses]
    decode_steps = sum(one.num_decode_steps for one in stats)
    batch_sequences = sum(one.num_batch_sequences for one in stats)
    return Load(
        num_ready=sum(status.state is ReplicaState.READY for status in statuses),
        num_slots=sum(status.num_slots for status in statuses),
        num_running=sum(one.num_running for one in stats),
        num_waiting=num_waiting + sum(one.num_waiting for one in stats),
        num_tokens=sum(one.num_decoded_tokens for one in stats),
        tokens_per_second=sum(_decode_rate(one) for one in stats),
        mean_batch=batch_sequences / decode_steps if decode_steps else 0.0,
        memory_bytes=sum(status.memory_bytes for status in statuses),
        progress=min((status.progress for status in statuses), default=0.0),
    )


def _decode_rate(stats: EngineStats) -> float:
    return stats.num_decoded_tokens / stats.decode_seconds if stats.decode_seconds else 0.0


@cache
def _client() -> SyncRedis:
    return connect(settings.REDIS_URL, max_connections=8)
