"""What the controller sees at one moment: all that a decision depends on. Values only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaSpec, ReplicaState, ReplicaStatus
from llamero.control.models import Scheduling
from models_registry.selectors import DeploymentTarget


@dataclass(frozen=True, slots=True)
class World:
    """Targets from the database, the rest as nodes and replicas have told. Times are in seconds.

    ``placed`` is what each node was last told to run, also where it is silent now.
    """

    now: float
    targets: tuple[DeploymentTarget, ...] = ()
    nodes: tuple[NodeStatus, ...] = ()
    placed: Mapping[str, tuple[ReplicaSpec, ...]] = field(default_factory=dict)
    statuses: tuple[ReplicaStatus, ...] = ()
    num_waiting: Mapping[str, int] = field(default_factory=dict)
    used_at: Mapping[str, float] = field(default_factory=dict)
    scheduling: Mapping[str, Scheduling] = field(default_factory=dict)
    next_numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Load:
    """What a deployment's replicas have to do, all together."""

    num_placed: int = 0
    num_ready: int = 0
    num_slots: int = 0
    num_running: int = 0
    num_waiting: int = 0
    ttft_seconds: float = 0.0
    used_at: float = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether any job runs or waits."""
        return self.num_running > 0 or self.num_waiting > 0


def sum_loads(world: World) -> dict[str, Load]:
    """Sum up the load of every target."""
    loads = {}
    by_deployment = group_statuses(world.statuses)
    placed = [spec.deployment for specs in world.placed.values() for spec in specs]
    for target in world.targets:
        statuses = by_deployment.get(target.deployment, ())
        ready = [status for status in statuses if status.state is ReplicaState.READY]
        loads[target.deployment] = Load(
            num_placed=placed.count(target.deployment),
            num_ready=len(ready),
            num_slots=sum(status.num_slots for status in ready),
            num_running=sum(status.stats.num_running for status in statuses),
            num_waiting=world.num_waiting.get(target.deployment, 0)
            + sum(status.stats.num_waiting for status in statuses),
            ttft_seconds=max((status.ttft_seconds for status in ready), default=0.0),
            used_at=world.used_at.get(target.deployment, 0.0),
        )
    return loads


def group_statuses(statuses: Iterable[ReplicaStatus]) -> dict[str, list[ReplicaStatus]]:
    """Give each deployment's heartbeats."""
    found: dict[str, list[ReplicaStatus]] = {}
    for status in statuses:
        found.setdefault(status.deployment, []).append(status)
    return found


@dataclass(frozen=True, slots=True)
class Sight:
    """Which nodes count. Those that fell silent a moment ago do; their replicas may come back."""

    silent_since: Mapping[str, float] = field(default_factory=dict)
    looked_at: float = 0.0


SILENCE_SECONDS = 5.0
"""On top of a heartbeat's lease: how long a silent node keeps its replicas."""
BREAK_SECONDS = 10.0
"""A controller that has not looked for so long knows nothing of how long a silence lasts."""


def look(world: World, before: Sight) -> tuple[World, Sight]:
    """Leave nodes that are lost out of the world; tells which are silent, and since when."""
    alive = {node.node for node in world.nodes}
    known = before.silent_since
    if world.now - before.looked_at > BREAK_SECONDS:
        known = {}
    silent = {name: known.get(name, world.now) for name in world.placed if name not in alive}
    lost = {name for name, since in silent.items() if world.now - since >= SILENCE_SECONDS}
    kept = {name: specs for name, specs in world.placed.items() if name not in lost}
    return replace(world, placed=kept), Sight(silent, world.now)


@dataclass(frozen=True, slots=True)
class Standing:
    """A replica that a node was told to run, with its last heartbeat.

    ``is_fresh``: it is what the deployment wants now. ``is_leaving``: its node is being emptied.
    """

    node: str
    spec: ReplicaSpec
    status: ReplicaStatus | None
    is_fresh: bool
    is_leaving: bool

    @property
    def is_ready(self) -> bool:
        """Whether it serves."""
        return self.status is not None and self.status.state is ReplicaState.READY

    @property
    def is_coming(self) -> bool:
        """Whether it starts or loads, or has not been heard of yet."""
        return self.status is None or self.status.state.is_coming

    @property
    def has_failed(self) -> bool:
        """Whether its node has given it up."""
        return self.status is not None and self.status.state is ReplicaState.FAILED

    @property
    def num_running(self) -> int:
        """Count its running jobs."""
        return self.status.stats.num_running if self.status else 0


def list_standings(world: World, target: DeploymentTarget) -> list[Standing]:
    """List a deployment's replicas; those of a node that is ending itself count no more."""
    ending = {node.node for node in world.nodes if node.is_draining}
    statuses = {status.replica: status for status in world.statuses}
    return [
        Standing(
            node=node,
            spec=spec,
            status=statuses.get(spec.replica),
            is_fresh=spec == spec_of(target, spec.replica),
            is_leaving=world.scheduling.get(node) is Scheduling.DRAINING,
        )
        for node, specs in world.placed.items()
        if node not in ending
        for spec in specs
        if spec.deployment == target.deployment
    ]


def spec_of(target: DeploymentTarget, replica: str) -> ReplicaSpec:
    """Give the spec of a deployment's replica of this name."""
    return ReplicaSpec(
        replica=replica,
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


def number_of(replica: str) -> int:
    """Read the number in a replica's name."""
    number = replica.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def is_runnable(target: DeploymentTarget) -> bool:
    """Whether there is something to run."""
    return target.enabled and bool(target.files)


def open_nodes(world: World) -> Sequence[NodeStatus]:
    """Give the nodes that new replicas may come to."""
    return [
        node
        for node in world.nodes
        if not node.is_draining
        and world.scheduling.get(node.node, Scheduling.OPEN) is Scheduling.OPEN
    ]
