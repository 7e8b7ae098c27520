"""What each node should run, as the controller wants it, and how each node is."""

import msgspec

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaSpec
from inference.relay.connect import SyncRedis, text_of
from inference.relay.keys import LEASE_SECONDS, NODES, desired_key, node_key, wake_channel

_encoder = msgspec.json.Encoder()
_specs = msgspec.json.Decoder(tuple[ReplicaSpec, ...])
_nodes = msgspec.json.Decoder(NodeStatus)


class DesiredState:
    """The specs per node (kept until replaced) and the nodes' heartbeats (kept 5 seconds)."""

    def __init__(self, redis: SyncRedis) -> None:
        self._redis = redis

    def publish(self, node: str, specs: tuple[ReplicaSpec, ...]) -> bool:
        """Set what the node should run and wake it; False if that is what it was told before."""
        wanted = _encoder.encode(specs)
        before = self._redis.set(desired_key(node), wanted, get=True)
        if before == wanted:
            return False
        self.wake(node)
        return True

    def read(self, node: str) -> tuple[ReplicaSpec, ...] | None:
        """Give what the node should run; None if it was never told, or by another version."""
        raw = self._redis.get(desired_key(node))
        try:
            return None if raw is None else _specs.decode(raw)
        except msgspec.ValidationError:
            return None

    def wake(self, node: str) -> None:
        """Make the node look at its specs now."""
        self._redis.publish(wake_channel(node), "changed")

    def beat_node(self, status: NodeStatus) -> None:
        """Renew the node's heartbeat."""
        pipe = self._redis.pipeline(transaction=False)
        pipe.set(node_key(status.node), _encoder.encode(status), ex=LEASE_SECONDS)
        pipe.sadd(NODES, status.node)
        pipe.execute()

    def remove_node(self, node: str) -> None:
        """Forget a node that leaves in good order; its specs stay."""
        self._redis.delete(node_key(node))
        self._redis.srem(NODES, node)

    def all_placed(self) -> dict[str, tuple[ReplicaSpec, ...]]:
        """Give what every node was told that was not signed off, silent ones too."""
        names = sorted(text_of(name) for name in self._redis.smembers(NODES))
        return {name: self.read(name) or () for name in names}

    def nodes(self) -> tuple[NodeStatus, ...]:
        """Give the nodes whose heartbeat is alive, by name."""
        names = sorted(text_of(name) for name in self._redis.smembers(NODES))
        if not names:
            return ()
        found = self._redis.mget([node_key(name) for name in names])
        return tuple(_nodes.decode(raw) for raw in found if raw is not None)
