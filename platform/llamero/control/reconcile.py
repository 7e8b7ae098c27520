"""Look, decide, tell: carries out what the database wants, and writes back how it goes."""

import logging
from contextlib import suppress
from dataclasses import dataclass, field

from django.utils import timezone

from inference.relay.connect import UNREACHABLE, RedisError, SyncRedis
from inference.relay.demand import DemandBoard, Lease
from inference.relay.desired import DesiredState
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import waiting_counts
from llamero.control.decision import Decision, Memory, decide
from llamero.control.draining import Drains
from llamero.control.failures import FailureLog
from llamero.control.node_states import note_nodes, read_scheduling
from llamero.control.observation import Verdict, describe_outlook
from llamero.control.world import World
from models_registry.models import Deployment
from models_registry.selectors import DeploymentTarget, list_deployment_targets

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Controller:
    """Decides once a second while it holds the lease; another control worker's stands by."""

    memory: Memory = field(default_factory=Memory)
    drains: Drains = field(default_factory=Drains)
    failures: FailureLog = field(default_factory=FailureLog)
    lease: Lease | None = None

    def reconcile(self, redis: SyncRedis) -> None:
        """Tell each node what to run, and record each deployment's state where it changed."""
        self.lease = self.lease or Lease(redis)
        if not self.lease.hold():
            self.memory = Memory()
            return
        world = read_world(redis)
        decision = decide(world, self.memory)
        carry_out(redis, world, decision)
        self.memory = decision.memory
        for target in world.targets:
            record(target, decision.verdicts[target.deployment])
        self.failures.keep(world.statuses)
        self.drains.finish(world, decision.busy)

    def let_go(self) -> None:
        """Let another control worker take over at once; without a word it does so in seconds."""
        if self.lease is not None:
            with suppress(*UNREACHABLE, RedisError):
                self.lease.let_go()


def read_world(redis: SyncRedis) -> World:
    """Look at everything that a decision depends on."""
    desired, board = DesiredState(redis), DemandBoard(redis)
    nodes = desired.nodes()
    scheduling = read_scheduling()
    if strangers := {node.node for node in nodes} - set(scheduling):
        note_nodes(strangers)
    return World(
        now=board.now(),
        targets=tuple(list_deployment_targets()),
        nodes=nodes,
        placed=desired.all_placed(),
        statuses=ReplicaRegistry(redis).list(),
        num_waiting=waiting_counts(redis),
        used_at=board.used_at(),
        scheduling=scheduling,
        next_numbers=board.next_numbers(),
    )


def carry_out(redis: SyncRedis, world: World, decision: Decision) -> None:
    """Tell nodes and gateways."""
    desired, board = DesiredState(redis), DemandBoard(redis)
    # Before a node hears of a name: after a crash in between, the name is not given twice.
    if decision.next_numbers != world.next_numbers:
        board.keep_numbers(decision.next_numbers)
    for node, specs in decision.specs.items():
        if desired.publish(node, specs):
            names = ", ".join(spec.replica for spec in specs)
            logger.info("node %s should run %s", node, names or "nothing")
    board.note_uses(decision.busy, world.now)
    known = {target.deployment for target in world.targets}
    idle = decision.asleep | (set(world.used_at) - known)
    board.forget_uses({name: world.used_at.get(name, 0.0) for name in idle})
    board.expect(decision.expected, world.now)
    board.publish(
        {
            target.deployment: describe_outlook(target, decision.verdicts[target.deployment])
            for target in world.targets
        }
    )


def record(target: DeploymentTarget, verdict: Verdict) -> None:
    """Write a state that differs from the one read; a deployment that changed meanwhile waits."""
    if (target.state, target.reason) == (verdict.state.value, verdict.reason):
        return
    num_changed = Deployment.objects.filter(slug=target.deployment, state=target.state).update(
        state=verdict.state, reason=verdict.reason, state_changed_at=timezone.now()
    )
    if num_changed:
        logger.info(
            "deployment %s: %s -> %s %s",
            target.deployment,
            target.state,
            verdict.state.value,
            verdict.reason,
        )
