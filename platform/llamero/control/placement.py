"""Which replica should run on which node. Pure: targets and nodes in, specs per node out."""

from collections.abc import Iterable, Sequence

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaSpec
from models_registry.selectors import DeploymentTarget

Placement = dict[str, tuple[ReplicaSpec, ...]]


def place(targets: Iterable[DeploymentTarget], nodes: Sequence[NodeStatus]) -> Placement:
    """Give every live node its specs, an empty tuple for one with nothing to do.

    The first node that is not draining takes all replicas. Without one nothing is placed.
    """
    placement: Placement = {node.node: () for node in nodes}
    open_nodes = [node.node for node in nodes if not node.is_draining]
    if open_nodes:
        wanted = [target for target in targets if target.enabled and target.files]
        placement[open_nodes[0]] = tuple(spec for target in wanted for spec in specs_of(target))
    return placement


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
