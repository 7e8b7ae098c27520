"""The engine's thread takes commands from any thread and sleeps when idle."""

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from inference.backend.fake import FakeBackend, FakeModel
from inference.engine.thread import EngineThread
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import FinishReason
from inference.protocol.jobs import EmbeddingJob
from inference.protocol.replicas import ModelKind, ReplicaSpec, RuntimeProfile
from inference.worker.loading import build_engine
from tests.inference.engine.fakes import FAR_DEADLINE, make_job
from tests.inference.engine.inbox import Inbox


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(FakeModel(100_000))


@pytest.fixture
def thread(backend: FakeBackend, inbox: Inbox) -> Iterator[EngineThread]:
    engine = EngineThread(backend, RuntimeProfile(num_slots=4, context_length=100_000), inbox)
    engine.start()
    yield engine
    engine.stop()


def test_jobs_of_many_threads_are_answered(thread: EngineThread, inbox: Inbox) -> None:
    jobs = [make_job(f"job{index}", f"prompt {index}") for index in range(20)]
    callers = [threading.Thread(target=thread.submit, args=(job,)) for job in jobs]
    for caller in callers:
        caller.start()
    for job in jobs:
        assert inbox.wait_for_end(job.id).done.num_completion_tokens == 4
    assert thread.stats().num_jobs_done == 20


def test_cancel_ends_a_running_job(thread: EngineThread, inbox: Inbox) -> None:
    thread.submit(make_job(max_tokens=90_000))
    inbox.wait_for_event("job")
    thread.cancel("job")
    assert inbox.wait_for_end("job").done.finish_reason is FinishReason.CANCELLED


def test_what_can_never_run_is_refused_by_submit(thread: EngineThread) -> None:
    with pytest.raises(EngineError):
        thread.submit(make_job(prompt_tokens=(-1,)))


def test_an_idle_engine_uses_no_cpu(
    thread: EngineThread, inbox: Inbox, backend: FakeBackend
) -> None:
    thread.submit(make_job())
    inbox.wait_for_end("job")
    steps, batches = thread.stats().num_steps, len(backend.batches)
    time.sleep(0.05)
    assert (thread.stats().num_steps, len(backend.batches)) == (steps, batches)


def test_stop_tells_running_and_waiting_jobs_that_they_are_lost(
    backend: FakeBackend, inbox: Inbox
) -> None:
    thread = EngineThread(backend, RuntimeProfile(num_slots=1, context_length=100_000), inbox)
    thread.start()
    thread.submit(make_job("running", max_tokens=90_000))
    thread.submit(make_job("waiting", "other", max_tokens=90_000))
    inbox.wait_for_event("running")
    thread.stop()
    for job_id in ("running", "waiting"):
        failed = inbox.wait_for_end(job_id).failed
        assert (failed.code, failed.is_retryable) == (ErrorCode.ENGINE_LOST, True)
    with pytest.raises(EngineError):
        thread.submit(make_job("late"))
    assert backend.num_open_samplers == 0


def test_a_broken_step_costs_its_jobs_and_not_the_thread(
    thread: EngineThread, backend: FakeBackend, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(_: Sequence[int]) -> int:
        raise RuntimeError("boom")

    good, backend.next_token = backend.next_token, explode
    thread.submit(make_job("bad"))
    assert inbox.wait_for_end("bad").failed.is_retryable
    backend.next_token = good
    thread.submit(make_job("good", "something else"))
    assert inbox.wait_for_end("good").done
    assert "an engine step failed" in caplog.text


def make_spec(kind: ModelKind) -> ReplicaSpec:
    return ReplicaSpec(
        replica="r", deployment="d", model="m", kind=kind, files=("fake:?step_ms=1",), sha256=("",)
    )


def test_a_fake_engine_is_built_from_its_path(inbox: Inbox) -> None:
    loaded = build_engine(make_spec(ModelKind.CHAT), inbox, lambda _: None)
    loaded.runner.start()
    loaded.runner.submit(make_job())
    assert inbox.wait_for_end("job").done
    assert loaded.model.facts().description == "fake"
    loaded.runner.stop()


def test_a_fake_embedding_engine_is_built_from_its_path(inbox: Inbox) -> None:
    loaded = build_engine(make_spec(ModelKind.EMBEDDING), inbox, lambda _: None)
    loaded.runner.start()
    job = EmbeddingJob(
        id="e", deployment="d", owner="o", gateway="g", inputs=((3,),), deadline=FAR_DEADLINE
    )
    loaded.runner.submit(job)
    assert inbox.wait_for_end("e").done.num_prompt_tokens == 1
    loaded.runner.stop()


def test_a_thread_whose_every_step_fails_gives_up_and_refuses_more(
    backend: FakeBackend, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(_: Sequence[int]) -> int:
        raise RuntimeError("boom")

    backend.next_token = explode
    thread = EngineThread(backend, RuntimeProfile(num_slots=4, context_length=100_000), inbox)
    thread.start()
    for index in range(11):
        thread.submit(make_job(f"job{index}", f"prompt {index}"))
        assert inbox.wait_for_end(f"job{index}").failed.is_retryable
    thread.stop()
    assert "the engine thread died" in caplog.text
    with pytest.raises(EngineError) as caught:
        thread.submit(make_job("late"))
    assert (caught.value.code, caught.value.is_retryable) == (ErrorCode.ENGINE_LOST, True)


def test_an_engine_is_stopped_with_jobs_in_flight_again_and_again() -> None:
    for turn in range(20):
        backend, inbox = FakeBackend(FakeModel(100_000)), Inbox()
        thread = EngineThread(backend, RuntimeProfile(num_slots=2, context_length=100_000), inbox)
        thread.start()
        for index in range(5):
            thread.submit(make_job(f"job{index}", f"{turn} {index}", max_tokens=90_000))
        thread.stop()
        for index in range(5):
            assert inbox.wait_for_end(f"job{index}").failed.code == ErrorCode.ENGINE_LOST
        assert backend.num_open_samplers == 0
