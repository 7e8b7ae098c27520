"""Which replicas exist and how they are: leases renewed by a heartbeat each second."""

from collections.abc import Iterable
from typing import Any

import msgspec

from inference.protocol.replicas import ReplicaState, ReplicaStatus
from inference.relay.connect import SyncRedis, text_of
from inference.relay.keys import REPLICAS, replica_key
from inference.relay.reaper import ReplicaEnd, reap
from inference.relay.scripts import script

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ReplicaStatus)
# What a state means for jobs: they may come, will be able to, or must go elsewhere.
_PHASES = {
    ReplicaState.READY: "ready",
    ReplicaState.STARTING: "coming",
    ReplicaState.LOADING: "coming",
    ReplicaState.FAILED: "lost",
    ReplicaState.STOPPED: "lost",
}


class ReplicaRegistry:
    """The heartbeats of all replicas. A heartbeat is the lease on the replica's jobs."""

    def __init__(self, redis: SyncRedis) -> None:
        self._redis = redis
        self._beat = script("beat")

    def beat(self, status: ReplicaStatus) -> None:
        """Renew the lease for 5 seconds, for 15 while it loads.

        When failed or stopped, others go on with its jobs.
        """
        self._beat.run(
            self._redis,
            (
                status.replica,
                status.deployment,
                _encoder.encode(status),
                _PHASES.get(status.state, ""),
                status.num_slots,
                status.stats.prompt_token_seconds,
                status.node,
            ),
        )

    def remove(self, replica: str) -> None:
        """Forget a replica that ended in good order; others go on with its jobs."""
        reap(self._redis, replica, ReplicaEnd.ORDERLY)

    def get(self, replica: str) -> ReplicaStatus | None:
        """Give a replica's last heartbeat while its lease runs."""
        return decode_status(self._redis.hget(replica_key(replica), "status"))

    def list(self, deployment: str | None = None) -> tuple[ReplicaStatus, ...]:
        """Give the heartbeats of all replicas, or of one deployment, by name."""
        members: Iterable[Any] = self._redis.zrange(REPLICAS, 0, -1)
        pipe = self._redis.pipeline(transaction=False)
        for name in map(text_of, members):
            pipe.hget(replica_key(name), "status")
        statuses = (decode_status(raw) for raw in pipe.execute())
        return select_statuses(statuses, deployment)


def decode_status(raw: bytes | str | None) -> ReplicaStatus | None:
    """Read a heartbeat; None for a missing one or one of another version."""
    if raw is None:
        return None
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError:
        return None


def select_statuses(
    statuses: Iterable[ReplicaStatus | None], deployment: str | None
) -> tuple[ReplicaStatus, ...]:
    """Keep the live heartbeats of a deployment, ordered by replica."""
    kept = [s for s in statuses if s and (deployment is None or s.deployment == deployment)]
    return tuple(sorted(kept, key=lambda status: status.replica))
