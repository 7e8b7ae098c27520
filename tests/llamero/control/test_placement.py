"""Which node gets which replicas."""

from llamero.control.placement import place
from tests.llamero.control.fakes import make_node, make_target


def test_an_enabled_deployment_goes_to_the_live_node() -> None:
    placement = place([make_target(generation=3)], [make_node("n1")])
    (spec,) = placement["n1"]
    assert (spec.replica, spec.deployment, spec.generation) == ("chat.0", "chat", 3)
    assert spec.files == ("/models/a.gguf",)


def test_each_replica_has_a_name_of_its_own() -> None:
    specs = place([make_target(min_replicas=3)], [make_node("n1")])["n1"]
    assert [spec.replica for spec in specs] == ["chat.0", "chat.1", "chat.2"]


def test_what_is_off_or_has_no_files_runs_nowhere() -> None:
    targets = [make_target(enabled=False), make_target(files=()), make_target(min_replicas=0)]
    assert place(targets, [make_node("n1")]) == {"n1": ()}


def test_a_draining_node_is_emptied() -> None:
    placement = place([make_target()], [make_node("n1", is_draining=True), make_node("n2")])
    assert placement["n1"] == ()
    assert len(placement["n2"]) == 1


def test_without_a_node_nothing_is_placed() -> None:
    assert place([make_target()], []) == {}
