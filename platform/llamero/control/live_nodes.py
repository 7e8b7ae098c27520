"""The nodes as they report now, for the admin's pages."""

from dataclasses import dataclass

from django.conf import settings

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaStatus
from inference.relay.connect import UNREACHABLE, RedisError, connect
from inference.relay.desired import DesiredState
from inference.relay.registry import ReplicaRegistry
from llamero.expiring_cache import ExpiringCache

_recent: ExpiringCache["LiveNodes"] = ExpiringCache(lifetime_seconds=1.0)


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A node's heartbeat, and those of its replicas."""

    status: NodeStatus
    replicas: tuple[ReplicaStatus, ...]


@dataclass(frozen=True, slots=True)
class LiveNodes:
    """All nodes that report; ``is_known`` is False while nobody hears them."""

    nodes: dict[str, LiveNode]
    is_known: bool = True


def read_live_nodes() -> LiveNodes:
    """Look, at most once a second."""
    found = _recent.get("")
    if found is None:
        found = _read()
        _recent.put("", found)
    return found


def _read() -> LiveNodes:
    redis = connect(settings.REDIS_URL)
    try:
        nodes = DesiredState(redis).nodes()
        statuses = ReplicaRegistry(redis).list()
    except (*UNREACHABLE, RedisError):
        return LiveNodes({}, is_known=False)
    finally:
        redis.close()
    return LiveNodes(
        {
            node.node: LiveNode(node, tuple(one for one in statuses if one.node == node.node))
            for node in nodes
        }
    )
