"""A replica process: tickets in, shared steps, events out, and a clean end."""

import hashlib
import os
import signal
from pathlib import Path

import psutil

from inference.node.orphan import PARENT_VARIABLE
from inference.protocol.events import Done, FinishReason, Started, Tokens
from inference.protocol.replicas import ReplicaState
from tests.inference.relay.broker import Broker
from tests.inference.worker.conftest import StartReplica
from tests.inference.worker.replicas import Client, make_job, make_spec
from tests.processes import PATIENCE_SECONDS, wait_until


async def test_a_job_is_taken_and_streamed(start_replica: StartReplica, client: Client) -> None:
    start_replica()
    client.wait_for_status()
    job = make_job(max_tokens=5)
    await client.submit(job)
    events = client.wait_for_end(job)
    assert isinstance(events[0], Started)
    assert sum(len(event.token_ids) for event in events if isinstance(event, Tokens)) == 5
    end = events[-1]
    assert isinstance(end, Done)
    assert (end.finish_reason, end.num_completion_tokens) == (FinishReason.LENGTH, 5)


async def test_eight_jobs_share_steps(start_replica: StartReplica, client: Client) -> None:
    process = start_replica()
    client.wait_for_status()
    jobs = [make_job(max_tokens=120) for _ in range(8)]
    # However slowly they are submitted, they are found together.
    process.send_signal(signal.SIGSTOP)
    await client.submit(*jobs)
    process.send_signal(signal.SIGCONT)
    for job in jobs:
        assert isinstance(client.wait_for_end(job)[-1], Done)
    status = client.wait_for_status(matches=lambda status: status.stats.num_decoded_tokens >= 952)
    assert status.stats.mean_batch > 4


async def test_more_jobs_than_slots_all_end(start_replica: StartReplica, client: Client) -> None:
    start_replica()
    client.wait_for_status()
    jobs = [make_job(max_tokens=1) for _ in range(50)]
    await client.submit(*jobs)
    for job in jobs:
        assert isinstance(client.wait_for_end(job)[-1], Done)


async def test_cancel_frees_the_slot(start_replica: StartReplica, client: Client) -> None:
    start_replica()
    client.wait_for_status()
    job = make_job(max_tokens=4000)
    await client.submit(job)
    client.wait_for_start(job)
    await client.cancel(job)
    end = client.wait_for_end(job)[-1]
    assert isinstance(end, Done)
    assert end.finish_reason is FinishReason.CANCELLED
    assert 0 < end.num_completion_tokens < 3000
    client.wait_for_status(matches=lambda status: status.stats.num_running == 0)


async def test_cancel_right_after_submit_always_ends_the_job(
    start_replica: StartReplica, client: Client
) -> None:
    start_replica()
    client.wait_for_status()
    for _ in range(30):
        job = make_job(max_tokens=4000)
        await client.submit(job)
        await client.cancel(job)
        end = client.wait_for_end(job)[-1]
        assert isinstance(end, Done)
        assert end.finish_reason is FinishReason.CANCELLED


async def test_sigterm_finishes_short_jobs_and_leaves_the_rest_to_others(
    start_replica: StartReplica, client: Client
) -> None:
    process = start_replica(LLAMERO_DRAIN_SECONDS="2.5")
    client.wait_for_status()
    short, endless = make_job(max_tokens=60), make_job(max_tokens=4000)
    await client.submit(endless, short)
    client.wait_for_start(endless)
    client.wait_for_start(short)
    process.terminate()
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert isinstance(client.events(short)[-1], Done)
    assert isinstance(client.events(endless)[-1], Tokens)
    # What the log tells, it tells for life, and no line for each ticket.
    assert "INFO inference.worker.slots: 1 jobs go on elsewhere\n" in output
    assert "celery" not in output
    [view] = await client.gateway.poll([(endless.id, 1)])
    assert view.state == "waiting"
    status = client.registry.get("chat-1")
    assert status is None or status.state is ReplicaState.STOPPED


def test_a_wrong_file_fails_with_a_reason(
    start_replica: StartReplica, client: Client, tmp_path: Path
) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"not a model")
    process = start_replica(make_spec(files=(str(model),), sha256=("0" * 64,)))
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 3
    status = client.wait_for_status(state=ReplicaState.FAILED)
    assert "SHA-256 differs" in status.reason
    assert status.bad_sha256 == "0" * 64
    assert status.reason in output


def test_a_broken_model_fails_with_a_reason(
    start_replica: StartReplica, client: Client, tmp_path: Path
) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"not a model")
    sha256 = hashlib.sha256(b"not a model").hexdigest()
    process = start_replica(make_spec(files=(str(model),), sha256=(sha256,)))
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 3
    assert client.wait_for_status(state=ReplicaState.FAILED).reason


def test_a_replica_dies_with_its_parent(start_replica: StartReplica, client: Client) -> None:
    process = start_replica(**{PARENT_VARIABLE: "1" if os.getpid() != 1 else "2"})
    assert process.wait(PATIENCE_SECONDS) == 1


async def test_a_restarted_server_costs_no_events(
    start_replica: StartReplica, client: Client, broker: Broker
) -> None:
    start_replica()
    client.wait_for_status()
    job = make_job(max_tokens=400)
    await client.submit(job)
    client.wait_for_start(job)
    broker.stop(signal.SIGKILL)
    broker.start()
    end = client.wait_for_end(job)[-1]
    assert isinstance(end, Done)
    assert end.num_completion_tokens == 400
    after = make_job()
    await client.submit(after)
    assert isinstance(client.wait_for_end(after)[-1], Done)


async def test_jobs_leave_no_threads_behind(start_replica: StartReplica, client: Client) -> None:
    process = start_replica()
    client.wait_for_status()

    def num_threads() -> int:
        return psutil.Process(process.pid).num_threads()

    # Slots have their threads once all of them have worked together.
    process.send_signal(signal.SIGSTOP)
    together = [make_job(max_tokens=100) for _ in range(8)]
    await client.submit(*together)
    process.send_signal(signal.SIGCONT)
    for job in together:
        client.wait_for_end(job)
    before = num_threads()
    jobs = [make_job(max_tokens=2) for _ in range(100)]
    await client.submit(*jobs)
    for job in jobs:
        client.wait_for_end(job)
    wait_until(lambda: num_threads() <= before, what="no more threads than before")
