"""Which replica should run on which node. Pure: what is wanted and what is so in, specs out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from inference.protocol.nodes import NodeStatus, usable_gpus
from inference.protocol.replicas import ReplicaSpec, ReplicaStatus
from llamero.control.rooms import room_of
from models_registry.rooms import Room
from models_registry.selectors import DeploymentTarget

Placed = Mapping[str, Sequence[ReplicaSpec]]


@dataclass(frozen=True, slots=True)
class Placement:
    """The specs of every live node, and why a deployment has a replica that is nowhere."""

    specs: dict[str, tuple[ReplicaSpec, ...]]
    obstacles: dict[str, str] = field(default_factory=dict)


def place(
    targets: Iterable[DeploymentTarget],
    nodes: Sequence[NodeStatus],
    placed: Placed | None = None,
    statuses: Iterable[ReplicaStatus] = (),
) -> Placement:
    """Leave replicas on the node they are ``placed`` on; give the rest to the one with most room.

    A node that is draining keeps nothing. A replica that no node has room for runs nowhere, unless
    its deployment says that it may.
    """
    wanted = [target for target in targets if target.enabled and target.files]
    open_nodes = [node for node in nodes if not node.is_draining]
    chosen: dict[str, list[ReplicaSpec]] = {node.node: [] for node in nodes}
    homes = {
        spec.replica: node.node for node in open_nodes for spec in (placed or {}).get(node.node, ())
    }
    homeless: list[tuple[DeploymentTarget, ReplicaSpec]] = []
    for target in wanted:
        for spec in specs_of(target):
            if home := homes.get(spec.replica):
                chosen[home].append(spec)
            else:
                homeless.append((target, spec))
    obstacles = {}
    if homeless and open_nodes:
        by_name = {target.deployment: target for target in wanted}
        by_replica = {status.replica: status for status in statuses}
        rooms = [
            (node, room_of(node, chosen[node.node], by_name, by_replica)) for node in open_nodes
        ]
        obstacles = _settle(homeless, rooms, chosen)
    return Placement({node: _ordered(specs) for node, specs in chosen.items()}, obstacles)


def _settle(
    homeless: Sequence[tuple[DeploymentTarget, ReplicaSpec]],
    rooms: Sequence[tuple[NodeStatus, Room]],
    chosen: dict[str, list[ReplicaSpec]],
) -> dict[str, str]:
    """Give each replica the node with the most room; the others' deployments get a reason."""
    left = {node.node: room for node, room in rooms}
    obstacles: dict[str, str] = {}
    for target, spec in homeless:
        estimates = {node.node: target.estimate(usable_gpus(node.devices)) for node, _ in rooms}
        fitting = [name for name, room in left.items() if room.holds(estimates[name])]
        if not fitting and not target.ignores_memory:
            shortages = [
                room.describe_shortage(estimate)
                for name, room in left.items()
                if (estimate := estimates[name]) is not None
            ]
            obstacles[target.deployment] = f"No node has room: {'; '.join(shortages)}."
            continue
        best = max(fitting or left, key=lambda name: _size(left[name]))
        left[best] = left[best].without(estimates[best])
        chosen[best].append(spec)
    return obstacles


def _size(room: Room) -> tuple[int, int]:
    """Compare rooms: GPUs first, since whatever runs there runs faster."""
    return sum(gpu.free_bytes for gpu in room.gpus), room.host_bytes


def _ordered(specs: Sequence[ReplicaSpec]) -> tuple[ReplicaSpec, ...]:
    return tuple(sorted(specs, key=lambda spec: spec.replica))


def specs_of(target: DeploymentTarget) -> list[ReplicaSpec]:
    """Give the replicas of a deployment, by stable names."""
    return [
        ReplicaSpec(
            replica=f"{target.deployment}.{index}",
            deployment=target.deployment,
            model=target.model,
            kind=target.kind,
            files=target.files,
            sha256=target.sha256,
            draft_files=target.draft_files,
            draft_sha256=target.draft_sha256,
            loras=target.loras,
            profile=target.profile,
            generation=target.generation,
        )
        for index in range(target.min_replicas)
    ]
