"""Replicas are killed under their jobs; no job fails, no token is lost or told twice."""

import os
import signal
import threading
from collections.abc import Iterator

import psutil
import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Done, Failed, Started, Vectors
from inference.protocol.jobs import EmbeddingJob
from inference.protocol.replicas import ModelKind, ReplicaState
from inference.relay.reaper import sweep
from inference.relay.scripts import script
from tests.inference.node.conftest import Node
from tests.inference.worker.replicas import Client, make_job, make_spec
from tests.inference.worker.wholeness import check_whole
from tests.processes import wait_until

SWEEP_SECONDS = 0.2
GATEWAY = make_job().gateway


@pytest.fixture(autouse=True)
def sweeper(client: Client) -> Iterator[None]:
    """Do what the control worker does, only more often, and show that the gateway lives."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(SWEEP_SECONDS):
            script("greet").run(client.redis, (GATEWAY,))
            client.send_tickets(sweep(client.redis).tickets)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    stop.set()
    thread.join()


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, number)


@pytest.mark.parametrize("names", [("chat-1",), ("chat-1", "chat-2")])
async def test_killed_under_eight_streams(
    node: Node, client: Client, names: tuple[str, ...]
) -> None:
    node.want(*(make_spec(name) for name in names))
    pids = [client.wait_for_status(name).pid for name in names]
    jobs = [make_job(max_tokens=400) for _ in range(8)]
    whole = make_job(max_tokens=400, stream=False)
    await client.submit(*jobs, whole)
    for job in jobs:
        client.wait_for_start(job)
    kill(pids[0])
    for job in (*jobs, whole):
        check_whole(job, client.wait_for_end(job))
    told = [event for event in client.events(jobs[0]) if isinstance(event, Started)]
    assert len(told) <= 2
    client.wait_for_status(matches=lambda status: status.pid not in (0, pids[0]))


async def test_embeddings_go_on_too(node: Node, client: Client) -> None:
    spec = make_spec(kind=ModelKind.EMBEDDING, files=("fake:?token_ms=10",))
    node.want(spec)
    status = client.wait_for_status()
    job = EmbeddingJob(
        id="embed",
        deployment="chat",
        owner="alice",
        gateway="gw",
        inputs=tuple((70, 71, number) for number in range(64)),
        deadline=make_job().deadline,
    )
    await client.submit(job)
    wait_until(lambda: client.events(job), what="the first vectors")
    kill(status.pid)
    events = client.wait_for_end(job)
    assert isinstance(events[-1], Done)
    vectors: dict[int, str] = {}
    for event in events:
        if isinstance(event, Vectors):
            vectors |= enumerate(event.vectors, start=event.first_index)
    assert sorted(vectors) == list(range(64))


async def test_an_engine_that_hangs_is_not_ready(node: Node, client: Client) -> None:
    node.want(make_spec(files=("fake:?hang_on=5",)))
    client.wait_for_status()
    job = make_job(prompt_tokens=(70, 5, 70))
    await client.submit(job)
    status = client.wait_for_status(state=ReplicaState.STALLED)
    assert "no step for" in status.reason
    with pytest.raises(EngineError) as caught:
        await client.submit(make_job())
    assert caught.value.code is ErrorCode.NO_READY_REPLICA
    await client.cancel(job)
    kill(status.pid)
    client.wait_for_end(job)
    client.wait_for_status(matches=lambda found: found.pid not in (0, status.pid))


async def test_a_job_that_crashes_replicas_is_refused_and_its_neighbours_end_well(
    node: Node, client: Client
) -> None:
    node.want(make_spec(files=("fake:?step_ms=5&abort_on=5",)))
    client.wait_for_status()
    good = [make_job(max_tokens=300) for _ in range(6)]
    await client.submit(*good)
    for job in good:
        client.wait_for_start(job)
    poison = make_job(prompt_tokens=(70, 5, 70))
    await client.submit(poison)
    end = client.wait_for_end(poison)[-1]
    assert isinstance(end, Failed)
    assert (end.code, end.is_retryable) == (ErrorCode.REQUEST_CRASHED_ENGINE, False)
    for job in good:
        check_whole(job, client.wait_for_end(job))
    assert psutil.Process(client.wait_for_status().pid).is_running()
