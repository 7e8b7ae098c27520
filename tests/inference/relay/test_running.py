"""Jobs that the server gave to a replica which never heard of them."""

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Failed
from inference.relay.connect import SyncRedis
from inference.relay.gateway import GatewayRelay
from inference.relay.registry import ReplicaRegistry
from inference.relay.running import RunningJobs
from inference.relay.waiting import WaitingSet
from tests.inference.relay.fakes import make_job, make_status


async def test_a_stray_job_ends_as_lost(client: SyncRedis, gateway: GatewayRelay) -> None:
    ReplicaRegistry(client).beat(make_status())
    known, stray, waiting = make_job(), make_job(), make_job()
    for job in (known, stray, waiting):
        await gateway.submit(job, max_queue=10)
    jobs = WaitingSet(client, "chat")
    assert jobs.take("chat-1")
    assert jobs.take("chat-1")
    running = RunningJobs(client, "chat-1")
    assert running.ids() == {known.id, stray.id}
    assert running.fail([stray.id, waiting.id, "unknown"]) == (stray.id,)
    assert running.ids() == {known.id}
    views = await gateway.poll([(stray.id, 1), (waiting.id, 1)])
    assert [view.state for view in views] == ["done", "waiting"]
    ((_, event),) = views[0].events
    assert isinstance(event, Failed)
    assert event.code == ErrorCode.ENGINE_LOST
