"""Decisions over time: changes, lost nodes, memory that is short, and what must hold whatever."""

import random
from dataclasses import replace

import pytest

from inference.protocol.replicas import ReplicaSpec
from llamero.control.decision import Decision, Memory
from llamero.control.models import Scheduling
from llamero.control.observation import Verdict
from llamero.control.world import SILENCE_SECONDS
from models_registry.models import DeploymentState
from tests.llamero.control.cluster import (
    DRAIN_SECONDS,
    LOAD_SECONDS,
    Cluster,
    Machine,
    replica_bytes,
)
from tests.llamero.control.fakes import GIB, make_large

# A replica of a large deployment takes a good gigabyte: two of them fit into 3, one into 2.
ROOM_FOR_ONE, ROOM_FOR_TWO = 2 * GIB, 3 * GIB


def settle(cluster: Cluster, seconds: int = 60) -> Decision:
    for _ in range(seconds):
        decision = cluster.step()
    return decision


def placed(decision: Decision, node: str) -> list[str]:
    return [spec.replica for spec in decision.specs[node]]


def test_a_changed_deployment_serves_without_a_gap_where_memory_allows() -> None:
    cluster = Cluster([make_large()], [Machine("a", ROOM_FOR_TWO)])
    settle(cluster, 10)
    cluster.bump("chat")
    decision = cluster.step()
    assert placed(decision, "a") == ["chat.0", "chat.1"]
    under_way = Verdict(DeploymentState.READY, "Rolling out: 0 of 1 replica at generation 2.")
    assert decision.verdicts["chat"] == under_way
    for _ in range(20):
        decision = cluster.step()
        assert cluster.ready("chat")
    assert [process.spec.generation for process in cluster.ready("chat")] == [2]
    assert decision.verdicts["chat"] == Verdict(DeploymentState.READY)


def test_it_is_replaced_old_first_where_memory_is_short() -> None:
    cluster = Cluster([make_large()], [Machine("a", ROOM_FOR_ONE)])
    settle(cluster, 10)
    cluster.bump("chat")
    decision = cluster.step()
    assert decision.specs["a"] == ()
    assert decision.expected == {"chat"}
    num_gap = 0
    while not cluster.ready("chat"):
        decision = cluster.step()
        assert decision.verdicts["chat"].state in (DeploymentState.LOADING, DeploymentState.READY)
        num_gap += 1
    assert num_gap <= LOAD_SECONDS + DRAIN_SECONDS + 4


def test_of_several_one_at_a_time_makes_way() -> None:
    target = make_large(min_replicas=3, max_replicas=3)
    cluster = Cluster([target], [Machine(name, ROOM_FOR_ONE) for name in "abc"])
    settle(cluster, 20)
    cluster.bump("chat")
    for _ in range(60):
        cluster.step()
        assert len(cluster.ready("chat")) >= 2
    assert [process.spec.generation for process in cluster.ready("chat")] == [2, 2, 2]


def test_a_change_that_never_loads_leaves_the_old_one_serving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster([make_large()], [Machine("a", ROOM_FOR_TWO)])
    settle(cluster, 10)
    monkeypatch.setattr("tests.llamero.control.cluster.LOAD_SECONDS", 10**6)
    cluster.machines["a"].processes["chat.0"].age = 10**6
    cluster.bump("chat")
    settle(cluster, 100)
    assert [process.spec.replica for process in cluster.ready("chat")] == ["chat.0"]


def test_replicas_of_a_lost_node_start_elsewhere_under_new_names() -> None:
    target = make_large(min_replicas=2, max_replicas=2)
    cluster = Cluster([target], [Machine("a", ROOM_FOR_TWO), Machine("b", ROOM_FOR_TWO)])
    settle(cluster, 20)
    assert len(cluster.machines["b"].processes) == 1
    cluster.machines["b"].is_cut_off = True
    for _ in range(int(SILENCE_SECONDS)):
        assert len(cluster.step().specs["a"]) == 1
    assert len(settle(cluster, 3).specs["a"]) == 2
    assert "chat.2" in cluster.machines["a"].processes
    cluster.machines["b"].is_cut_off = False
    settle(cluster, 20)
    assert sum(len(machine.processes) for machine in cluster.machines.values()) == 2


def test_a_controller_that_was_away_gives_nodes_time_to_report() -> None:
    target = make_large(min_replicas=2, max_replicas=2)
    cluster = Cluster([target], [Machine("a", ROOM_FOR_TWO), Machine("b", ROOM_FOR_TWO)])
    settle(cluster, 20)
    cluster.now += 60
    cluster.machines["b"].is_cut_off = True
    assert len(settle(cluster, 3).specs["a"]) == 1
    cluster.memory = Memory()
    assert len(settle(cluster, 3).specs["a"]) == 1


def test_a_draining_node_is_emptied_once_others_serve() -> None:
    cluster = Cluster([make_large()], [Machine("a", ROOM_FOR_TWO), Machine("b", ROOM_FOR_ONE)])
    settle(cluster, 10)
    cluster.scheduling["a"] = Scheduling.DRAINING
    for _ in range(20):
        cluster.step()
        assert cluster.ready("chat")
    assert not cluster.machines["a"].processes
    assert cluster.machines["b"].processes


def test_a_draining_node_serves_on_while_nothing_could_take_over() -> None:
    cluster = Cluster([make_large()], [Machine("a", ROOM_FOR_TWO)])
    settle(cluster, 10)
    cluster.scheduling["a"] = Scheduling.DRAINING
    assert settle(cluster).verdicts["chat"] == Verdict(
        DeploymentState.READY,
        "Serves, and is to move: 0 of 1 replica in place. "
        "Waits for a node: every node is cordoned or draining.",
    )
    assert cluster.ready("chat")
    cluster.bump("chat")
    assert settle(cluster).verdicts["chat"] == Verdict(
        DeploymentState.READY,
        "Rolling out: 0 of 1 replica at generation 2. "
        "Waits for a node: every node is cordoned or draining.",
    )


def test_a_used_deployment_takes_the_memory_of_the_one_unused_longest() -> None:
    targets = [make_large(name, min_replicas=0) for name in ("old", "older", "new")]
    cluster = Cluster(targets, [Machine("a", ROOM_FOR_TWO)])
    cluster.used_at = {"old": cluster.now - 100, "older": cluster.now - 200}
    settle(cluster, 10)
    cluster.use("new", 1)
    decision = cluster.step()
    assert decision.asleep == {"older"}
    assert decision.expected == {"new"}
    settle(cluster, 20)
    assert cluster.ready("new")
    assert cluster.ready("old")
    assert not cluster.ready("older")
    assert "older" not in cluster.used_at


def test_neither_busy_nor_pinned_nor_just_used_deployments_make_way() -> None:
    pinned = make_large("pinned")
    busy, fresh, new = (make_large(name, min_replicas=0) for name in ("busy", "fresh", "new"))
    for occupant in (pinned, busy, fresh):
        cluster = Cluster([occupant, new], [Machine("a", ROOM_FOR_ONE)])
        cluster.use(occupant.deployment, 1 if occupant is busy else 0)
        settle(cluster, 8)
        cluster.use("new", 1)
        if occupant is fresh:
            cluster.used_at["fresh"] = cluster.now
        decision = cluster.step()
        assert cluster.ready(occupant.deployment)
        assert not decision.asleep
        assert "No node has room" in decision.verdicts["new"].reason


def test_a_pinned_deployment_takes_the_memory_of_an_idle_one() -> None:
    cluster = Cluster([make_large("idle", min_replicas=0)], [Machine("a", ROOM_FOR_ONE)])
    cluster.used_at["idle"] = cluster.now - 100
    settle(cluster, 10)
    cluster.targets["pinned"] = make_large("pinned")
    settle(cluster, 20)
    assert cluster.ready("pinned")
    assert not cluster.ready("idle")


def test_a_burst_grows_and_shrinks_a_deployment() -> None:
    target = make_large(max_replicas=3)
    cluster = Cluster([target], [Machine("a", 8 * GIB)])
    settle(cluster, 10)
    cluster.use("chat", 20)
    settle(cluster)
    assert len(cluster.ready("chat")) == 3
    cluster.use("chat", 0)
    settle(cluster, 200)
    assert len(cluster.ready("chat")) == 1


class Invariants:
    """What must hold after each decision, whatever came before."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._homes: dict[str, str] = {}

    def check(self, before: dict[str, tuple[ReplicaSpec, ...]], decision: Decision) -> None:
        self._check_names(decision)
        self._check_newcomers(before, decision)
        self._check_memory(decision)
        self._check_service(before, decision)

    def _check_names(self, decision: Decision) -> None:
        names = [spec.replica for specs in decision.specs.values() for spec in specs]
        assert len(names) == len(set(names))
        for node, specs in decision.specs.items():
            for spec in specs:
                assert self._homes.setdefault(spec.replica, node) == node

    def _check_newcomers(
        self, before: dict[str, tuple[ReplicaSpec, ...]], decision: Decision
    ) -> None:
        cluster = self._cluster
        for node, specs in decision.specs.items():
            for spec in set(specs) - set(before[node]):
                target = cluster.targets[spec.deployment]
                assert cluster.scheduling.get(node, Scheduling.OPEN) is Scheduling.OPEN
                assert target.enabled
                assert spec.generation == target.generation
        for name, target in cluster.targets.items():
            fresh = [
                spec
                for specs in decision.specs.values()
                for spec in specs
                if (spec.deployment, spec.generation) == (name, target.generation)
            ]
            assert len(fresh) <= 2 * target.max_replicas
            if not target.enabled:
                assert not fresh

    def _check_memory(self, decision: Decision) -> None:
        for node, specs in decision.specs.items():
            assert len(specs) * replica_bytes() <= self._cluster.machines[node].total_bytes

    def _check_service(
        self, before: dict[str, tuple[ReplicaSpec, ...]], decision: Decision
    ) -> None:
        """A deployment at work loses a serving replica to a better one, or for want of memory."""
        cluster = self._cluster
        for name in decision.busy:
            assert name not in decision.asleep
            if not cluster.targets[name].enabled:
                continue
            ready = {process.spec.replica for process in cluster.ready(name)}
            num_left = sum(
                spec.replica in ready for specs in decision.specs.values() for spec in specs
            )
            told = {spec.replica for specs in before.values() for spec in specs}
            wanted = decision.memory.paces[name].num_wanted
            num_due = min(wanted, len(ready & told))
            assert num_left >= num_due - (name in decision.expected)


def disturb(cluster: Cluster, dice: random.Random) -> None:
    """Let something happen, or nothing."""
    name = dice.choice(list(cluster.targets))
    node = dice.choice(list(cluster.machines))
    target = cluster.targets[name]
    match dice.randrange(40):
        case 0:
            cluster.bump(name)
        case 1:
            cluster.targets[name] = replace(target, enabled=not target.enabled)
        case 2:
            machine = cluster.machines[node]
            machine.is_cut_off = not machine.is_cut_off
        case 3:
            cluster.machines[node].processes.clear()
        case 4 | 5:
            cluster.scheduling[node] = dice.choice(list(Scheduling))
        case 6:
            cluster.memory = Memory()
        case 7:
            cluster.now += dice.choice((5, 60))
        case 8 | 9 | 10 | 11:
            cluster.use(name, dice.choice((0, 1, 3, 12)))
        case 12:
            cluster.jobs.clear()


@pytest.mark.parametrize("seed", range(16))
def test_invariants_hold_through_whatever_happens(seed: int) -> None:
    dice = random.Random(seed)
    targets = [
        make_large(
            f"m{number}",
            min_replicas=dice.choice((0, 0, 1, 2)),
            max_replicas=dice.choice((2, 3)),
            idle_timeout_seconds=dice.choice((0, 20, 100)),
        )
        for number in range(4)
    ]
    machines = [Machine(name, dice.choice((2, 3, 5)) * GIB) for name in "abc"]
    cluster = Cluster(targets, machines)
    invariants = Invariants(cluster)
    for _ in range(150):
        disturb(cluster, dice)
        before = {name: machine.told for name, machine in cluster.machines.items()}
        invariants.check(before, cluster.step())
    calm_down(cluster)


def calm_down(cluster: Cluster) -> None:
    """When nothing happens any more, decisions become the same, and all who can serve do."""
    cluster.jobs.clear()
    for machine in cluster.machines.values():
        machine.is_cut_off = False
    settle(cluster, 300)
    decision = settle(cluster, 1)
    for _ in range(10):
        again = cluster.step()
        assert again.specs == decision.specs
        assert again.verdicts == decision.verdicts
        assert not again.asleep
    for name, target in cluster.targets.items():
        verdict, num_ready = again.verdicts[name], len(cluster.ready(name))
        wanted = again.memory.paces[name].num_wanted if target.enabled else 0
        assert num_ready == wanted or (num_ready < wanted and not can_take(cluster)), verdict
        if not wanted:
            assert verdict.state in (DeploymentState.SLEEPING, DeploymentState.STOPPED)


def can_take(cluster: Cluster) -> bool:
    """Whether an open node has room for one more replica."""
    return any(
        cluster.scheduling.get(machine.name, Scheduling.OPEN) is Scheduling.OPEN
        and machine.total_bytes - len(machine.processes) * replica_bytes() > 2 * GIB
        for machine in cluster.machines.values()
    )
