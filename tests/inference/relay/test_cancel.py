"""A job stops wherever it is: on its way, waiting, running, ended."""

import pytest

from inference.protocol.errors import EngineError
from inference.protocol.events import FinishReason, decode_event
from inference.relay.keys import events_key
from inference.relay.mailbox import CancelInbox
from inference.relay.registry import ReplicaRegistry
from inference.relay.waiting import WaitingSet
from inference.relay.writer import EventWriter
from tests.inference.relay.fakes import DONE, make_job, make_status


@pytest.fixture
async def job(client, gateway):
    ReplicaRegistry(client).beat(make_status())
    job = make_job()
    await gateway.submit(job, max_queue=8)
    return job


async def test_a_waiting_job_is_dropped_with_an_end(client, gateway, job):
    await gateway.cancel([job.id], is_abandoned=False)
    assert WaitingSet(client, "chat").take("chat-1") is None
    [(_, fields)] = client.xrange(events_key(job.id))
    assert decode_event(fields[b"e"]).finish_reason is FinishReason.CANCELLED


async def test_a_running_job_is_told_to_its_replica_and_kept_until_it_ends(client, gateway, job):
    WaitingSet(client, "chat").take("chat-1")
    with CancelInbox(client, "chat-1") as inbox:
        assert inbox.listen(0.05) == ()
        await gateway.cancel([job.id], is_abandoned=False)
        assert inbox.listen(4) == (job.id,)
        assert inbox.pending() == (job.id,)
        EventWriter(client).write([(job.id, 1, 1, DONE)])
        assert inbox.pending() == ()


async def test_an_abandoned_job_leaves_no_key(client, gateway, job):
    WaitingSet(client, "chat").take("chat-1")
    await gateway.cancel([job.id], is_abandoned=True)
    EventWriter(client).write([(job.id, 1, 1, DONE)])
    assert client.keys(f"*{job.id}") == []


async def test_an_abandoned_waiting_job_leaves_no_key(client, gateway, job):
    await gateway.cancel([job.id], is_abandoned=True)
    assert client.keys(f"*{job.id}") == []


async def test_a_cancel_that_overtakes_the_submission_wins(client, gateway, job):
    late = make_job()
    await gateway.cancel([late.id], is_abandoned=True)
    with pytest.raises(EngineError):
        await gateway.submit(late, max_queue=8)
    assert len(WaitingSet(client, "chat")) == 1


async def test_cancelling_one_job_leaves_its_neighbours(client, gateway, job):
    other = make_job()
    await gateway.submit(other, max_queue=8)
    await gateway.cancel([job.id], is_abandoned=True)
    assert WaitingSet(client, "chat").take("chat-1").job == other
