"""Nodes that do what a decision tells them, a second at a time: a model of a cluster, for tests."""

from dataclasses import dataclass, field, replace
from functools import cache

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import EngineStats, ReplicaSpec, ReplicaState, ReplicaStatus
from llamero.control.decision import Decision, Memory, decide
from llamero.control.models import Scheduling
from llamero.control.world import World
from models_registry.selectors import DeploymentTarget
from tests.llamero.control.fakes import GIB, make_large

LOAD_SECONDS = 4
DRAIN_SECONDS = 3


@dataclass
class Process:
    """A replica's process."""

    spec: ReplicaSpec
    age: int = 0
    drains_for: int | None = None
    num_running: int = 0

    @property
    def state(self) -> ReplicaState:
        if self.drains_for is not None:
            return ReplicaState.DRAINING
        return ReplicaState.READY if self.age >= LOAD_SECONDS else ReplicaState.LOADING


@dataclass
class Machine:
    """A node. One that is cut off goes on with what it runs, and nobody hears of it."""

    name: str
    total_bytes: int
    processes: dict[str, Process] = field(default_factory=dict)
    told: tuple[ReplicaSpec, ...] = ()
    is_cut_off: bool = False


class Cluster:
    """Machines, deployments and their use; ``step`` lets a second pass."""

    def __init__(self, targets: list[DeploymentTarget], machines: list[Machine]) -> None:
        self.now = 1000.0
        self.targets = {target.deployment: target for target in targets}
        self.machines = {machine.name: machine for machine in machines}
        self.scheduling: dict[str, Scheduling] = {}
        self.used_at: dict[str, float] = {}
        self.jobs: dict[str, int] = {}
        self.numbers: dict[str, int] = {}
        self.memory = Memory()
        self.world = World(self.now)
        self.decision: Decision | None = None

    def step(self) -> Decision:
        """Let nodes work, look at them, decide, tell them."""
        self.now += 1
        for machine in self.machines.values():
            self._run(machine)
        self.world = self.look()
        decision = decide(self.world, self.memory)
        self.memory, self.decision = decision.memory, decision
        self.numbers = decision.next_numbers
        for name in decision.asleep:
            self.used_at.pop(name, None)
        for name in decision.busy:
            self.used_at[name] = self.now
        for name, specs in decision.specs.items():
            self.machines[name].told = specs
        return decision

    def bump(self, name: str) -> None:
        """Change a deployment, so that its replicas are replaced."""
        target = self.targets[name]
        self.targets[name] = replace(target, generation=target.generation + 1)

    def use(self, name: str, num_jobs: int) -> None:
        """Have so many jobs of a deployment run or wait from now on."""
        self.used_at[name] = self.now
        self.jobs[name] = num_jobs

    def ready(self, name: str) -> list[Process]:
        """Give the processes of a deployment that serve, where they can be reached."""
        return [
            process
            for machine in self.machines.values()
            if not machine.is_cut_off
            for process in machine.processes.values()
            if process.spec.deployment == name and process.state is ReplicaState.READY
        ]

    def look(self) -> World:
        """Give what a controller would see."""
        reachable = [one for one in self.machines.values() if not one.is_cut_off]
        waiting = self._share_jobs()
        return World(
            now=self.now,
            targets=tuple(self.targets.values()),
            nodes=tuple(self._beat(machine) for machine in reachable),
            placed={machine.name: machine.told for machine in self.machines.values()},
            statuses=tuple(
                self._status(machine, process)
                for machine in reachable
                for process in machine.processes.values()
            ),
            num_waiting=waiting,
            used_at=dict(self.used_at),
            scheduling=dict(self.scheduling),
            next_numbers=dict(self.numbers),
        )

    def _run(self, machine: Machine) -> None:
        told = {spec.replica: spec for spec in machine.told}
        for name, process in list(machine.processes.items()):
            process.age += 1
            if name not in told and process.drains_for is None:
                process.drains_for = DRAIN_SECONDS
            if process.drains_for is not None:
                process.drains_for -= 1
                if process.drains_for < 0:
                    del machine.processes[name]
        for name, spec in told.items():
            machine.processes.setdefault(name, Process(spec))

    def _share_jobs(self) -> dict[str, int]:
        waiting = {}
        for name, num_jobs in self.jobs.items():
            num_left = num_jobs
            for process in self.ready(name):
                process.num_running = min(process.spec.profile.num_slots, num_left)
                num_left -= process.num_running
            waiting[name] = num_left
        return waiting

    def _beat(self, machine: Machine) -> NodeStatus:
        used = len(machine.processes) * replica_bytes()
        return NodeStatus(
            node=machine.name,
            memory_total_bytes=machine.total_bytes,
            memory_free_bytes=max(0, machine.total_bytes - used),
        )

    def _status(self, machine: Machine, process: Process) -> ReplicaStatus:
        return ReplicaStatus(
            replica=process.spec.replica,
            deployment=process.spec.deployment,
            node=machine.name,
            state=process.state,
            generation=process.spec.generation,
            num_slots=process.spec.profile.num_slots,
            memory_bytes=64 * GIB,  # all of what was estimated has been taken
            stats=EngineStats(num_running=process.num_running),
        )


@cache
def replica_bytes() -> int:
    """Give what a replica of every large deployment takes."""
    estimate = make_large().estimate()
    assert estimate is not None
    return estimate.full_bytes
