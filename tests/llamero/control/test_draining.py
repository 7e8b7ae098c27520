"""A deployment that drains ends when it has nothing more to do; how replicas failed is kept."""

from datetime import UTC, datetime

import pytest

from inference.protocol.replicas import ReplicaFailure, ReplicaState, ReplicaStatus
from llamero.control.draining import QUIET_SECONDS, Drains
from llamero.control.failures import FailureLog
from llamero.control.world import World
from models_registry.models import Deployment
from models_registry.selectors import find_served_model, list_deployment_targets
from models_registry.services.deployments import drain_deployments, enable_deployments
from tests.models_registry.factories import make_deployment, make_model, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def deployment() -> Deployment:
    model = make_model()
    make_version(model)
    deployment = make_deployment(model, "chat", state="ready")
    drain_deployments(deployments=Deployment.objects.all())
    return deployment


def look(now: float) -> World:
    """See what there is at a time."""
    return World(now=now, targets=tuple(list_deployment_targets()))


def test_it_stops_when_it_has_been_quiet(deployment: Deployment) -> None:
    drains = Drains()
    drains.finish(look(100.0), busy={"chat"})
    drains.finish(look(200.0), busy=set())
    drains.finish(look(200.0 + QUIET_SECONDS - 0.1), busy=set())
    deployment.refresh_from_db()
    assert deployment.enabled

    drains.finish(look(200.0 + QUIET_SECONDS), busy=set())

    deployment.refresh_from_db()
    assert (deployment.enabled, deployment.is_draining) == (False, False)


def test_a_late_request_is_waited_for(deployment: Deployment) -> None:
    drains = Drains()
    drains.finish(look(200.0), busy=set())
    drains.finish(look(202.0), busy={"chat"})
    drains.finish(look(204.0), busy=set())
    deployment.refresh_from_db()
    assert deployment.enabled


def test_it_takes_nothing_new_until_it_is_loaded_again(deployment: Deployment) -> None:
    assert find_served_model("tiny") is None

    enable_deployments(deployments=Deployment.objects.all(), is_enabled=True)

    assert find_served_model("tiny") is not None


def test_the_last_failure_is_kept_and_written_once(
    deployment: Deployment, django_assert_num_queries: object
) -> None:
    def status(at: float, reason: str) -> ReplicaStatus:
        failure = ReplicaFailure(at=at, reason=reason, log=("one", "two"))
        return ReplicaStatus(
            replica=f"chat.{at}",
            deployment="chat",
            node="n",
            state=ReplicaState.STARTING,
            failure=failure,
        )

    log = FailureLog()
    log.keep([status(20.0, "newest"), status(10.0, "older")])
    with django_assert_num_queries(0):  # type: ignore[operator]
        log.keep([status(20.0, "newest")])
    FailureLog().keep([status(15.0, "told late")])

    deployment.refresh_from_db()
    assert (deployment.last_error, deployment.last_error_log) == ("newest", "one\ntwo")
    assert deployment.last_error_at == datetime.fromtimestamp(20.0, UTC)
