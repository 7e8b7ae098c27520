"""How much of each node's memory is promised to nobody, from heartbeats and what is placed."""

from collections.abc import Iterable, Mapping, Sequence

from django.conf import settings

from inference.gguf.memory import MemoryEstimate
from inference.protocol.nodes import Device, NodeStatus, usable_gpus
from inference.protocol.replicas import ReplicaSpec, ReplicaState, ReplicaStatus
from inference.relay.connect import UNREACHABLE, RedisError, connect
from inference.relay.desired import DesiredState
from inference.relay.registry import ReplicaRegistry
from models_registry.rooms import Room
from models_registry.selectors import DeploymentTarget, list_deployment_targets

LOADED = (ReplicaState.READY, ReplicaState.DRAINING)


def room_of(
    node: NodeStatus,
    placed: Iterable[ReplicaSpec],
    targets: Mapping[str, DeploymentTarget],
    statuses: Mapping[str, ReplicaStatus],
) -> Room:
    """Take from what is free what the node's replicas have been promised and not yet touched."""
    gpus = list(usable_gpus(node.devices))
    host = node.memory_free_bytes
    for spec in placed:
        target = targets.get(spec.deployment)
        estimate = target.estimate(usable_gpus(node.devices)) if target else None
        if estimate is None:
            continue
        status = statuses.get(spec.replica)
        host -= _still_to_come(estimate, status)
        if status is None or status.state not in LOADED or not _is_current(gpus):
            gpus = _take(gpus, estimate)
    return Room(node.node, max(0, host), node.memory_total_bytes, tuple(gpus))


def _still_to_come(estimate: MemoryEstimate, status: ReplicaStatus | None) -> int:
    """Give what a replica may yet take of the host; mapped files count as free until then."""
    resident = status.memory_bytes if status else 0
    return max(0, estimate.host.full_bytes - max(0, resident - estimate.host.mapped_bytes))


def _is_current(gpus: Sequence[Device]) -> bool:
    return all(gpu.is_free_current for gpu in gpus)


def _take(gpus: Sequence[Device], estimate: MemoryEstimate) -> list[Device]:
    return list(Room("", 0, 0, tuple(gpus)).without(estimate).gpus)


def read_rooms(*, besides: str = "") -> tuple[Room, ...]:
    """Read the rooms of all live nodes, without the promises to one deployment.

    Nothing where the broker does not answer: then nobody knows.
    """
    redis = connect(settings.REDIS_URL)
    try:
        desired = DesiredState(redis)
        nodes = desired.nodes()
        placed = {node.node: desired.read(node.node) or () for node in nodes}
        statuses = {status.replica: status for status in ReplicaRegistry(redis).list()}
    except (*UNREACHABLE, RedisError):
        return ()
    finally:
        redis.close()
    targets = {target.deployment: target for target in list_deployment_targets()}
    targets.pop(besides, None)
    return tuple(room_of(node, placed[node.node], targets, statuses) for node in nodes)
