"""Which node gets which replicas."""

from typing import Any

from inference.protocol.nodes import Device, NodeStatus
from inference.protocol.replicas import ReplicaSpec, ReplicaState, RuntimeProfile
from llamero.control.placement import place, specs_of
from models_registry.selectors import DeploymentTarget
from tests.llamero.control.fakes import make_node, make_status, make_target
from tests.models_registry.factories import make_facts

GIB = 1 << 30
# Contexts of 1 GiB, beside a process of about 0.1.
LARGE = make_facts(width=1 << 15)
PROFILE = RuntimeProfile(context_length=4096, num_slots=2, prefix_host_bytes=0)


def make_large(name: str = "chat", **changes: Any) -> DeploymentTarget:
    """Give a deployment whose replica takes a good gigabyte."""
    return make_target(deployment=name, facts=LARGE, profile=PROFILE, **changes)


def node_with(name: str, free: int, *gpus: int) -> NodeStatus:
    """Give a node with so much free memory, and GPUs with so much each."""
    cards = (
        Device(kind="gpu", name=f"CUDA{number}", total_bytes=free_bytes, free_bytes=free_bytes)
        for number, free_bytes in enumerate(gpus)
    )
    return NodeStatus(
        node=name, memory_total_bytes=16 * GIB, memory_free_bytes=free, devices=tuple(cards)
    )


def names(specs: tuple[ReplicaSpec, ...]) -> list[str]:
    return [spec.replica for spec in specs]


def test_an_enabled_deployment_goes_to_the_live_node() -> None:
    placement = place([make_target(generation=3)], [make_node("n1")])
    (spec,) = placement.specs["n1"]
    assert (spec.replica, spec.deployment, spec.generation) == ("chat.0", "chat", 3)
    assert spec.files == ("/models/a.gguf",)


def test_each_replica_has_a_name_of_its_own() -> None:
    specs = place([make_target(min_replicas=3)], [make_node("n1")]).specs["n1"]
    assert names(specs) == ["chat.0", "chat.1", "chat.2"]


def test_what_is_off_or_has_no_files_runs_nowhere() -> None:
    targets = [make_target(enabled=False), make_target(files=()), make_target(min_replicas=0)]
    assert place(targets, [make_node("n1")]).specs == {"n1": ()}


def test_a_draining_node_is_emptied() -> None:
    target = make_target()
    nodes = [make_node("n1", is_draining=True), make_node("n2")]
    placement = place([target], nodes, {"n1": specs_of(target)})
    assert placement.specs["n1"] == ()
    assert len(placement.specs["n2"]) == 1


def test_without_a_node_nothing_is_placed() -> None:
    assert place([make_target()], []).specs == {}


def test_the_node_with_most_room_is_chosen() -> None:
    nodes = [node_with("small", 2 * GIB), node_with("large", 5 * GIB)]
    placement = place([make_large("a"), make_large("b"), make_large("c")], nodes)
    assert names(placement.specs["large"]) == ["a.0", "b.0", "c.0"]
    placement = place([make_large(min_replicas=5)], nodes)
    assert len(placement.specs["large"]) == 4
    assert len(placement.specs["small"]) == 1


def test_a_replica_stays_where_it_is() -> None:
    target = make_large(generation=2)
    nodes = [node_with("a", GIB // 2), node_with("b", 9 * GIB)]
    placed = {"a": specs_of(make_large(generation=1))}
    placement = place([target], nodes, placed)
    assert placement.specs["a"][0].generation == 2
    assert placement.specs["b"] == ()


def test_without_room_a_deployment_waits_with_the_reason() -> None:
    placement = place([make_large()], [node_with("a", GIB // 2), node_with("b", GIB // 4)])
    assert placement.specs == {"a": (), "b": ()}
    assert "a has 512.0" in placement.obstacles["chat"]
    assert "b has 256.0" in placement.obstacles["chat"]


def test_one_that_ignores_memory_goes_where_most_is_left() -> None:
    nodes = [node_with("a", GIB // 4), node_with("b", GIB // 2)]
    placement = place([make_large(ignores_memory=True)], nodes)
    assert len(placement.specs["b"]) == 1
    assert not placement.obstacles


def test_a_replica_that_has_grown_is_not_counted_twice() -> None:
    here, other = make_large("here"), make_large("other")
    placed = {"a": specs_of(here)}
    grown = make_status(ReplicaState.READY, replica="here.0", memory_bytes=2 * GIB)
    node = node_with("a", GIB + GIB // 2)
    assert not place([here, other], [node], placed, [grown]).obstacles
    young = make_status(ReplicaState.LOADING, replica="here.0", memory_bytes=0)
    assert place([here, other], [node], placed, [young]).obstacles


def test_a_node_with_a_gpu_that_holds_it_is_preferred() -> None:
    nodes = [node_with("cpu", 12 * GIB), node_with("gpu", 4 * GIB, 8 * GIB)]
    assert names(place([make_large()], nodes).specs["gpu"]) == ["chat.0"]
    nodes = [node_with("cpu", 12 * GIB), node_with("gpu", 4 * GIB, GIB)]
    assert names(place([make_large()], nodes).specs["cpu"]) == ["chat.0"]


def test_a_gpu_is_taken_once_by_what_runs_on_it() -> None:
    here, other = make_large("here"), make_large("other")
    node = node_with("gpu", 8 * GIB, 5 * GIB // 2)
    ready = make_status(ReplicaState.READY, replica="here.0")
    placed = {"gpu": specs_of(here)}
    assert not place([here, other], [node], placed, [ready]).obstacles
    loading = make_status(ReplicaState.LOADING, replica="here.0")
    obstacles = place([here, other], [node], placed, [loading]).obstacles
    assert "CUDA0" in obstacles["other"]
