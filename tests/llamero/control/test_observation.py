"""What a deployment's state is, given its replicas' heartbeats."""

from inference.protocol.replicas import Outlook, Prospect, ReplicaState, RuntimeProfile
from llamero.control.observation import Verdict, describe_outlook, observe
from llamero.control.placement import FREEING, NO_NODE
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
    verdict = observe(make_target(), [], obstacle=NO_NODE)
    assert verdict == Verdict(DeploymentState.PENDING, "No node is running.")


def test_a_disabled_deployment_is_stopped() -> None:
    verdict = observe(make_target(enabled=False), [])
    assert verdict.state is DeploymentState.STOPPED


def test_a_model_without_a_version_waits_for_one() -> None:
    verdict = observe(make_target(files=()), [])
    assert verdict == Verdict(DeploymentState.PENDING, "The model has no ready version.")


def test_one_without_replicas_sleeps() -> None:
    assert observe(make_target(), [], num_wanted=0).state is DeploymentState.SLEEPING


def test_memory_that_is_being_freed_is_no_failure() -> None:
    assert observe(make_target(), [], obstacle=FREEING).state is DeploymentState.LOADING


def test_a_replica_that_keeps_ending_has_failed_while_it_starts_again() -> None:
    for state in (ReplicaState.STARTING, ReplicaState.LOADING):
        status = make_status(state, num_failures=2, reason="Last failure: no memory")
        verdict = observe(make_target(), [status])
        assert verdict == Verdict(DeploymentState.FAILED, "Last failure: no memory")
        assert observe(make_target(), [make_status(state, num_failures=1)]).reason == ""


def test_gateways_learn_whether_to_wait_and_how_long() -> None:
    target = make_target(profile=RuntimeProfile(job_timeout_seconds=30))
    prospects = {
        DeploymentState.READY: Prospect.COMING,
        DeploymentState.LOADING: Prospect.COMING,
        DeploymentState.SLEEPING: Prospect.COMING,
        DeploymentState.PENDING: Prospect.BLOCKED,
        DeploymentState.FAILED: Prospect.HOPELESS,
        DeploymentState.STOPPED: Prospect.OFF,
    }
    for state, prospect in prospects.items():
        outlook = describe_outlook(target, Verdict(state, "why"))
        assert outlook == Outlook(prospect=prospect, reason="why", patience_seconds=30)


def test_one_that_was_placed_loads_before_it_is_heard_of() -> None:
    assert observe(make_target(), [], is_placed=True).state is DeploymentState.LOADING
