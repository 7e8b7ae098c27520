"""Jobs that the server gave to a replica which never heard of them."""

from inference.relay.connect import SyncRedis
from inference.relay.gateway import GatewayRelay
from inference.relay.registry import ReplicaRegistry
from inference.relay.running import RunningJobs
from inference.relay.waiting import TakenJob, WaitingSet
from tests.inference.relay.fakes import make_job, make_status


async def test_a_stray_job_is_taken_again(client: SyncRedis, gateway: GatewayRelay) -> None:
    ReplicaRegistry(client).beat(make_status())
    known, stray, waiting = make_job(), make_job(), make_job()
    for job in (known, stray, waiting):
        await gateway.submit(job, max_queue=10)
    jobs = WaitingSet(client, "chat")
    assert jobs.take("chat-1")
    assert jobs.take("chat-1")
    running = RunningJobs(client, "chat-1")
    assert running.ids() == {known.id, stray.id}
    assert running.hand_back([stray.id, waiting.id, "unknown"]) == (stray.id,)
    assert running.ids() == {known.id}
    again = jobs.take("chat-2")
    assert isinstance(again, TakenJob)
    assert (again.job.id, again.job.attempt) == (stray.id, 2)
