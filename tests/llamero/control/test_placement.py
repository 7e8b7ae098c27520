"""Which node gets which replicas."""

from typing import Any

import pytest

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaSpec, ReplicaState
from llamero.control.decision import Decision, Memory, decide
from llamero.control.models import Scheduling
from llamero.control.observation import Verdict
from llamero.control.world import spec_of
from models_registry.models import DeploymentState
from models_registry.selectors import DeploymentTarget
from tests.llamero.control.fakes import (
    GIB,
    first_spec,
    make_large,
    make_node,
    make_ready,
    make_status,
    make_target,
    make_world,
    node_with,
)


def place(targets: list[DeploymentTarget], nodes: list[NodeStatus], **changes: Any) -> Decision:
    return decide(make_world(targets, nodes, **changes), Memory())


def names(specs: tuple[ReplicaSpec, ...]) -> list[str]:
    return [spec.replica for spec in specs]


def test_an_enabled_deployment_goes_to_the_live_node() -> None:
    (spec,) = place([make_target(generation=3)], [make_node("n1")]).specs["n1"]
    assert (spec.replica, spec.deployment, spec.generation) == ("chat.0", "chat", 3)
    assert spec.files == ("/models/a.gguf",)


def test_each_replica_has_a_name_of_its_own() -> None:
    decision = place([make_target(min_replicas=3, max_replicas=3)], [make_node("n1")])
    assert names(decision.specs["n1"]) == ["chat.0", "chat.1", "chat.2"]
    assert decision.next_numbers == {"chat": 3}


def test_a_name_is_never_given_twice() -> None:
    decision = place([make_target()], [make_node("n1")], next_numbers={"chat": 7})
    assert names(decision.specs["n1"]) == ["chat.7"]


def test_what_is_off_or_has_no_files_runs_nowhere() -> None:
    targets = [
        make_target(enabled=False),
        make_target(deployment="empty", files=()),
        make_target(deployment="idle", min_replicas=0),
    ]
    assert place(targets, [make_node("n1")]).specs == {"n1": ()}


def test_a_node_that_ends_itself_is_emptied_at_once() -> None:
    target = make_target()
    nodes = [make_node("n1", is_draining=True), make_node("n2")]
    decision = place([target], nodes, placed={"n1": (first_spec(target),)})
    assert decision.specs["n1"] == ()
    assert names(decision.specs["n2"]) == ["chat.1"]


@pytest.mark.parametrize("scheduling", [Scheduling.CORDONED, Scheduling.DRAINING])
def test_nothing_new_comes_to_a_closed_node(scheduling: Scheduling) -> None:
    decision = place([make_target()], [make_node("n1")], scheduling={"n1": scheduling})
    assert decision.specs == {"n1": ()}
    assert "cordoned or draining" in decision.verdicts["chat"].reason


def test_what_runs_on_a_cordoned_node_stays() -> None:
    target = make_target()
    decision = place(
        [target],
        [make_node("n1"), make_node("n2")],
        placed={"n1": (first_spec(target),)},
        scheduling={"n1": Scheduling.CORDONED},
    )
    assert names(decision.specs["n1"]) == ["chat.0"]
    assert decision.specs["n2"] == ()


def test_without_a_node_nothing_is_placed() -> None:
    decision = place([make_target()], [])
    assert decision.specs == {}
    assert decision.verdicts["chat"].reason == "No node is running."


def test_the_node_with_most_room_is_chosen() -> None:
    nodes = [node_with("small", 2 * GIB), node_with("large", 5 * GIB)]
    decision = place([make_large("a"), make_large("b"), make_large("c")], nodes)
    assert names(decision.specs["large"]) == ["a.0", "b.0", "c.0"]


def test_replicas_of_a_deployment_are_spread_as_far_as_there_is_room() -> None:
    nodes = [node_with("small", 3 * GIB), node_with("large", 9 * GIB)]
    decision = place([make_large(min_replicas=2, max_replicas=2)], nodes)
    assert [len(decision.specs[node]) for node in ("small", "large")] == [1, 1]
    decision = place([make_large(min_replicas=6, max_replicas=6)], nodes)
    assert [len(decision.specs[node]) for node in ("small", "large")] == [2, 4]


def test_without_room_a_deployment_waits_with_the_reason() -> None:
    decision = place([make_large()], [node_with("a", GIB // 2), node_with("b", GIB // 4)])
    assert decision.specs == {"a": (), "b": ()}
    assert "a has 512.0" in decision.verdicts["chat"].reason
    assert "b has 256.0" in decision.verdicts["chat"].reason


def test_one_that_ignores_memory_goes_where_most_is_left() -> None:
    nodes = [node_with("a", GIB // 4), node_with("b", GIB // 2)]
    decision = place([make_large(ignores_memory=True)], nodes)
    assert names(decision.specs["b"]) == ["chat.0"]


def test_a_replica_that_has_grown_is_not_counted_twice() -> None:
    here, other = make_large("here"), make_large("other")
    placed = {"a": (first_spec(here),)}
    node = node_with("a", GIB + GIB // 2)
    grown = make_status(
        ReplicaState.READY, replica="here.0", deployment="here", node="a", memory_bytes=2 * GIB
    )
    assert len(place([here, other], [node], placed=placed, statuses=(grown,)).specs["a"]) == 2
    young = make_status(ReplicaState.LOADING, replica="here.0", deployment="here", node="a")
    assert len(place([here, other], [node], placed=placed, statuses=(young,)).specs["a"]) == 1


def test_a_node_with_a_gpu_that_holds_it_is_preferred() -> None:
    nodes = [node_with("cpu", 12 * GIB), node_with("gpu", 4 * GIB, 8 * GIB)]
    assert names(place([make_large()], nodes).specs["gpu"]) == ["chat.0"]
    nodes = [node_with("cpu", 12 * GIB), node_with("gpu", 4 * GIB, GIB)]
    assert names(place([make_large()], nodes).specs["cpu"]) == ["chat.0"]


def test_a_gpu_is_taken_once_by_what_runs_on_it() -> None:
    here, other = make_large("here"), make_large("other")
    node = node_with("gpu", 8 * GIB, 5 * GIB // 2)
    placed = {"gpu": (first_spec(here),)}
    ready = make_ready(first_spec(here), "gpu")
    assert len(place([here, other], [node], placed=placed, statuses=(ready,)).specs["gpu"]) == 2
    loading = make_status(ReplicaState.LOADING, replica="here.0", deployment="here", node="gpu")
    decision = place([here, other], [node], placed=placed, statuses=(loading,))
    assert len(decision.specs["gpu"]) == 1
    assert "CUDA0" in decision.verdicts["other"].reason


def test_a_replica_that_failed_is_tried_once_on_every_other_node() -> None:
    target = make_target()
    first, second = spec_of(target, "chat.0"), spec_of(target, "chat.1")
    nodes = [make_node("a"), make_node("b")]
    failed = make_status(ReplicaState.FAILED, node="a", reason="no GPU")
    decision = place([target], nodes, placed={"a": (first,)}, statuses=(failed,))
    assert names(decision.specs["a"]) == ["chat.0"]
    assert names(decision.specs["b"]) == ["chat.1"]

    placed = {"a": (first,), "b": (second,)}
    again = make_status(ReplicaState.FAILED, node="b", replica="chat.1", reason="no GPU")
    decision = place([target], nodes, placed=placed, statuses=(failed, again))
    assert decision.specs == placed
    assert decision.verdicts["chat"] == Verdict(DeploymentState.FAILED, "no GPU")

    ready = make_ready(second, "b")
    decision = place([target], nodes, placed=placed, statuses=(failed, ready))
    assert decision.specs == {"a": (), "b": (second,)}
