"""From the database to the nodes' specs and back, over a real server."""

import pytest

from inference.protocol.replicas import Prospect, ReplicaState
from inference.relay.connect import SyncRedis, connect
from inference.relay.demand import DemandBoard, Lease
from inference.relay.desired import DesiredState
from inference.relay.gateway import read_outlook
from inference.relay.keys import OUTLOOK
from inference.relay.registry import ReplicaRegistry
from llamero.control.models import Node, Scheduling
from llamero.control.node_states import schedule_nodes
from llamero.control.reconcile import Controller
from models_registry.models import Deployment, DeploymentState
from tests.llamero.control.fakes import make_node, make_ready
from tests.models_registry.factories import make_deployment, make_model, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def redis(valkey_url: str) -> SyncRedis:
    client = connect(valkey_url)
    client.flushall()
    return client


@pytest.fixture
def deployment() -> Deployment:
    model = make_model()
    make_version(model)
    return make_deployment(model, "chat")


def test_a_node_is_told_and_the_state_written_back(
    redis: SyncRedis, deployment: Deployment
) -> None:
    desired, controller = DesiredState(redis), Controller()
    desired.beat_node(make_node("n1"))
    controller.reconcile(redis)
    (spec,) = desired.read("n1") or ()
    ReplicaRegistry(redis).beat(make_ready(spec, "n1"))
    controller.reconcile(redis)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.READY
    assert DemandBoard(redis).next_numbers() == {"chat": 1}


def test_two_controllers_take_turns(redis: SyncRedis, deployment: Deployment) -> None:
    desired = DesiredState(redis)
    desired.beat_node(make_node("n1"))
    other = Lease(redis)
    assert other.hold()
    controller = Controller()
    controller.reconcile(redis)
    assert desired.read("n1") is None
    other.let_go()
    controller.reconcile(redis)
    assert desired.read("n1")
    assert not other.hold()
    controller.let_go()
    assert other.hold()


def test_what_an_admin_says_of_a_node_outlives_the_controller(
    redis: SyncRedis, deployment: Deployment
) -> None:
    desired = DesiredState(redis)
    for name in ("n1", "n2"):
        desired.beat_node(make_node(name))
    Controller().reconcile(redis)
    assert [node.name for node in Node.objects.all()] == ["n1", "n2"]
    schedule_nodes(nodes=Node.objects.all(), scheduling=Scheduling.CORDONED)
    redis.flushall()
    for name in ("n1", "n2"):
        desired.beat_node(make_node(name))
    Controller().reconcile(redis)
    assert desired.read("n1") == desired.read("n2") == ()
    deployment.refresh_from_db()
    assert "cordoned" in deployment.reason


def test_an_idle_deployment_sleeps_and_a_use_wakes_it(
    redis: SyncRedis, deployment: Deployment
) -> None:
    Deployment.objects.update(min_replicas=0, idle_timeout_seconds=60)
    desired, board, controller = DesiredState(redis), DemandBoard(redis), Controller()
    desired.beat_node(make_node("n1"))
    controller.reconcile(redis)
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.SLEEPING
    assert desired.read("n1") == ()
    board.note_uses(["chat"], board.now())
    controller.reconcile(redis)
    assert len(desired.read("n1") or ()) == 1
    board.forget_uses(board.used_at())
    controller.reconcile(redis)
    assert desired.read("n1") == ()


def test_a_use_that_came_meanwhile_is_not_forgotten(redis: SyncRedis) -> None:
    board = DemandBoard(redis)
    board.note_uses(["a", "b"], 100.0)
    board.note_uses(["b"], 101.0)
    board.forget_uses({"a": 100.0, "b": 100.0, "never": 0.0})
    assert board.used_at() == {"b": 101.0}


def test_gateways_are_told_what_to_hope_for(redis: SyncRedis, deployment: Deployment) -> None:
    controller = Controller()
    controller.reconcile(redis)
    outlook = read_outlook(redis.hget(OUTLOOK, "chat"))
    assert outlook is not None
    assert outlook.prospect is Prospect.BLOCKED
    assert outlook.reason == "No node is running."
    Deployment.objects.update(enabled=False)
    controller.reconcile(redis)
    outlook = read_outlook(redis.hget(OUTLOOK, "chat"))
    assert outlook is not None
    assert (outlook.prospect, outlook.reason) == (Prospect.OFF, "It is switched off.")
    assert ReplicaState.READY not in {status.state for status in ReplicaRegistry(redis).list()}
