"""What jobs told is read by those who follow none of them."""

from inference.protocol.errors import ErrorCode
from inference.relay.history import UNREADABLE_EVENT, read_event, read_history, read_states
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet
from inference.relay.writer import EventWriter
from tests.inference.relay.fakes import DONE, make_job, make_status, make_token


async def test_states_and_events_are_told(client, gateway):
    ReplicaRegistry(client).beat(make_status())
    jobs = [make_job(id=name) for name in ("one", "two", "three")]
    for job in jobs:
        await gateway.submit(job, max_queue=8)
    for _ in range(2):
        WaitingSet(client, "chat").take("chat-1")
    EventWriter(client).write([("one", 1, 1, make_token(1)), ("one", 1, 2, DONE)])
    states = read_states(client, ["one", "two", "three", "four"])
    assert states == ["done", "running", "waiting", ""]
    assert read_history(client, "one") == [make_token(1), DONE]
    assert read_history(client, "four") == []


def test_an_event_of_another_version_ends_a_job():
    assert read_event(b'["x"]') is UNREADABLE_EVENT
    assert UNREADABLE_EVENT.code == ErrorCode.INTERNAL_ERROR
