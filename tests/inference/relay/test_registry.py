"""Heartbeats, desired state, text lane and mailboxes say what was put into them."""

import time

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ModelKind, ReplicaSpec, ReplicaState
from inference.protocol.text import Detokenize, Detokenized, TextReply, TextRequest
from inference.relay.desired import DesiredState
from inference.relay.keys import REPLICAS
from inference.relay.mailbox import WakeInbox
from inference.relay.registry import ReplicaRegistry
from inference.relay.text_lane import TextLane
from tests.inference.relay.fakes import Ear, make_status


async def test_replicas_are_listed_by_deployment(client, gateway):
    registry = ReplicaRegistry(client)
    first, second, other = make_status("a"), make_status("b"), make_status("c", deployment="x")
    for status in (second, first, other):
        registry.beat(status)
    assert registry.list("chat") == (first, second)
    assert registry.list() == await gateway.replicas() == (first, second, other)
    registry.remove("a")
    assert registry.get("a") is None
    assert registry.list("chat") == (second,)


async def test_who_was_silent_for_a_while_can_be_told_before_its_lease_ends(client, gateway):
    registry, silent = ReplicaRegistry(client), make_status("a")
    registry.beat(silent)
    registry.beat(beating := make_status("b"))
    client.zincrby(REPLICAS, -60, "a")
    assert await gateway.replicas(silent_seconds=90) == (silent, beating)
    assert await gateway.replicas(silent_seconds=30) == (beating,)


def test_a_lease_runs_five_seconds_and_longer_while_it_loads(client):
    registry = ReplicaRegistry(client)
    for state, seconds in ((ReplicaState.LOADING, 15), (ReplicaState.READY, 5)):
        began = time.monotonic()
        registry.beat(make_status("a", state=state))
        left = client.pttl("lm:rep:a") / 1000
        assert seconds - (time.monotonic() - began) - 0.01 < left <= seconds


def test_a_node_is_woken_when_its_specs_change_only(client):
    state = DesiredState(client)
    assert state.read("here") is None
    spec = ReplicaSpec(
        replica="a", deployment="chat", model="m", kind=ModelKind.CHAT, files=("f",), sha256=("0",)
    )
    with WakeInbox(client, "here") as inbox:
        assert inbox.listen(0.05) == ()
        assert state.publish("here", (spec,))
        assert inbox.listen(4) == ("changed",)
        assert not state.publish("here", (spec,))
        assert inbox.listen(0.05) == ()
    assert state.read("here") == (spec,)


def test_nodes_are_listed_while_they_beat(client):
    state = DesiredState(client)
    here = NodeStatus(node="here", num_cores=2)
    state.beat_node(here)
    assert state.nodes() == (here,)
    state.remove_node("here")
    assert state.nodes() == ()


async def test_a_question_reaches_a_replica_and_its_answer_the_gateway(client, gateway):
    ReplicaRegistry(client).beat(make_status())
    lane = TextLane(client, "chat", "chat-1")
    late = TextRequest(
        id="1", gateway="gw", deadline=time.time() - 1, question=Detokenize(tokens=())
    )
    fresh = TextRequest(id="2", gateway="gw", deadline=time.time() + 600, question=late.question)
    await gateway.ask("chat", late)
    await gateway.ask("chat", fresh)
    assert lane.take(1) == fresh
    ear = Ear(client)
    lane.reply(fresh, Detokenized(text="hi"))
    assert ear.hear() == TextReply(id="2", answer=Detokenized(text="hi"))


async def test_a_replica_that_ends_leaves_questions_to_others(client, gateway):
    ReplicaRegistry(client).beat(make_status())
    lane, other = TextLane(client, "chat", "chat-1"), TextLane(client, "chat", "chat-2")
    question, deadline = Detokenize(tokens=()), time.time() + 600
    requests = [
        TextRequest(id=name, gateway="gw", deadline=deadline, question=question) for name in "12"
    ]
    for request in requests:
        await gateway.ask("chat", request)
    assert lane.take(1) == requests[0]
    lane.call_back(1)
    assert lane.take(4) is None
    lane.give_back(requests[0])
    assert [other.take(1), other.take(1)] == requests
    assert lane.take(0.01) is None
