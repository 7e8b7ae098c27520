"""Events from the engine thread to the writer, in order and numbered."""

import threading
from collections.abc import Iterator, Sequence

import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason, Started, Timings
from inference.relay.waiting import TakenJob
from inference.worker.relay_sink import RelaySink
from tests.inference.relay.fakes import DONE, make_job, make_token
from tests.processes import PATIENCE_SECONDS, wait_until

WAIT = PATIENCE_SECONDS


class MemoryWriter:
    """Keeps rows; refuses the jobs in ``refused``; keeps them back while told to."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, int, int, Event]]] = []
        self.refused: tuple[str, ...] = ()
        self.num_kept_back = 0
        self.has_unsent = False
        self.tried = threading.Event()

    def write(self, rows: Sequence[tuple[str, int, int, Event]]) -> tuple[str, ...]:
        self.tried.set()
        self.has_unsent = self.num_kept_back > 0
        self.num_kept_back -= self.has_unsent
        if rows:
            self.calls.append(list(rows))
        return self.refused

    @property
    def rows(self) -> list[tuple[str, int, int, Event]]:
        return [row for call in self.calls for row in call]


@pytest.fixture
def writer() -> MemoryWriter:
    return MemoryWriter()


@pytest.fixture
def cancelled() -> list[str]:
    return []


@pytest.fixture
def sink(writer: MemoryWriter, cancelled: list[str]) -> Iterator[RelaySink]:
    sink = RelaySink(writer, cancelled.append)  # type: ignore[arg-type]
    sink.start()
    yield sink
    sink.stop(WAIT)


def test_the_time_to_a_first_token_counts_from_the_queue_and_once(
    sink: RelaySink, writer: MemoryWriter
) -> None:
    waited, taken_over = make_job(), make_job()
    done = sink.open(TakenJob(waited, waited_seconds=100.0))
    sink.open(TakenJob(taken_over, num_events=3, waited_seconds=900.0))
    sink([(waited.id, make_token(1)), (taken_over.id, make_token(1))])
    sink([(waited.id, make_token(2)), (waited.id, DONE)])
    assert done.wait(WAIT)
    assert 100.0 <= sink.first_tokens.typical() < 200.0


def test_a_whole_answers_first_token_came_before_its_text(
    sink: RelaySink, writer: MemoryWriter
) -> None:
    job = make_job(stream=False)
    done = sink.open(TakenJob(job, waited_seconds=100.0))
    end = Done(FinishReason.STOP, 3, 0, 40, timings=Timings(5_000.0, 90_000.0, 3))
    sink([(job.id, make_token(1)), (job.id, end)])
    assert done.wait(WAIT)
    assert 10.0 <= sink.first_tokens.typical() < 90.0


def test_a_jobs_events_are_numbered_and_its_end_wakes_the_slot(
    sink: RelaySink, writer: MemoryWriter
) -> None:
    job = make_job(attempt=3)
    done = sink.open(TakenJob(job))
    sink([(job.id, Started(0, 0))])
    sink([(job.id, make_token(1)), (job.id, DONE)])
    assert done.wait(WAIT)
    sink.stop(WAIT)
    assert [row[:3] for row in writer.rows] == [(job.id, 3, 1), (job.id, 3, 2), (job.id, 3, 3)]
    assert sink.open_jobs() == ()


def test_events_of_one_step_are_one_call(sink: RelaySink, writer: MemoryWriter) -> None:
    jobs = [make_job() for _ in range(8)]
    for job in jobs:
        sink.open(TakenJob(job))
    sink([(job.id, make_token(1)) for job in jobs])
    sink.stop(WAIT)
    assert [len(call) for call in writer.calls] == [8]


def test_nothing_follows_the_end(sink: RelaySink, writer: MemoryWriter) -> None:
    job = make_job()
    sink.open(TakenJob(job))
    sink([(job.id, Failed(ErrorCode.ENGINE_LOST, "")), (job.id, make_token(1)), (job.id, DONE)])
    sink([("unknown", DONE)])
    sink.stop(WAIT)
    assert len(writer.rows) == 1


def test_a_refused_job_is_stopped(
    sink: RelaySink, writer: MemoryWriter, cancelled: list[str]
) -> None:
    job = make_job()
    writer.refused = (job.id,)
    done = sink.open(TakenJob(job))
    sink([(job.id, make_token(1))])
    wait_until(lambda: cancelled == [job.id], what="the cancel")
    assert not done.is_set()
    sink([(job.id, DONE)])  # the engine has let it go
    assert done.wait(WAIT)
    sink.stop(WAIT)
    assert len(writer.rows) == 1


def test_a_later_attempt_goes_on_with_the_numbers(sink: RelaySink, writer: MemoryWriter) -> None:
    job = make_job(attempt=2)
    sink.open(TakenJob(job, num_events=7))
    sink([(job.id, DONE)])
    sink.stop(WAIT)
    assert [row[:3] for row in writer.rows] == [(job.id, 2, 8)]


def test_a_failing_server_stops_nothing(sink: RelaySink, writer: MemoryWriter) -> None:
    job = make_job()
    writer.num_kept_back = 1
    done = sink.open(TakenJob(job))
    sink([(job.id, make_token(1))])
    assert writer.tried.wait(WAIT)
    sink([(job.id, DONE)])
    assert done.wait(WAIT)
    sink.stop(WAIT)
    assert [row[2] for row in writer.rows] == [1, 2]
