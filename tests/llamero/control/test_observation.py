"""What a deployment's state is, given its replicas' heartbeats."""

from inference.protocol.replicas import ReplicaState
from llamero.control.observation import Verdict, observe
from models_registry.models import DeploymentState
from tests.llamero.control.fakes import make_status, make_target


def test_a_ready_replica_makes_a_ready_deployment() -> None:
    verdict = observe(make_target(), [make_status(ReplicaState.READY)])
    assert verdict == Verdict(DeploymentState.READY)


def test_an_older_generation_serves_until_the_new_one_does() -> None:
    statuses = [
        make_status(ReplicaState.READY, generation=1),
        make_status(ReplicaState.LOADING, generation=2),
    ]
    verdict = observe(make_target(generation=2), statuses)
    assert verdict.state is DeploymentState.READY


def test_loading_is_shown() -> None:
    for state in (ReplicaState.STARTING, ReplicaState.LOADING):
        verdict = observe(make_target(), [make_status(state)])
        assert verdict.state is DeploymentState.LOADING


def test_a_failure_keeps_its_reason() -> None:
    statuses = [make_status(ReplicaState.FAILED, reason="out of memory")]
    verdict = observe(make_target(), statuses)
    assert verdict == Verdict(DeploymentState.FAILED, "out of memory")


def test_an_engine_that_stands_still_is_a_failure_with_its_reason() -> None:
    statuses = [make_status(ReplicaState.STALLED, reason="no step for 9 s")]
    assert observe(make_target(), statuses) == Verdict(DeploymentState.FAILED, "no step for 9 s")


def test_a_failure_of_an_older_generation_is_past() -> None:
    statuses = [make_status(ReplicaState.FAILED, reason="old", generation=1)]
    verdict = observe(make_target(generation=2), statuses)
    assert verdict.state is DeploymentState.PENDING


def test_no_node_is_named_as_the_reason() -> None:
    verdict = observe(make_target(), [], obstacle="No node is running.")
    assert verdict == Verdict(DeploymentState.PENDING, "No node is running.")


def test_a_disabled_deployment_is_stopped() -> None:
    verdict = observe(make_target(enabled=False), [])
    assert verdict.state is DeploymentState.STOPPED


def test_a_model_without_a_version_waits_for_one() -> None:
    verdict = observe(make_target(files=()), [])
    assert verdict == Verdict(DeploymentState.PENDING, "The model has no ready version.")
