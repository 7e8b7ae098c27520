"""What a slot makes of an engine that takes a job, and of one that does not."""

from collections.abc import Iterator

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Failed
from inference.protocol.jobs import Job
from inference.relay.waiting import TakenJob
from inference.worker.relay_sink import RelaySink
from inference.worker.slots import Slots
from tests.inference.relay.fakes import make_job
from tests.inference.worker.test_relay_sink import MemoryWriter
from tests.processes import PATIENCE_SECONDS


class ListedJobs:
    """Gives two jobs, then none."""

    def __init__(self) -> None:
        self.jobs = [make_job(id="a"), make_job(id="b")]

    def take(self, replica: str, *, finished: str | None = None) -> TakenJob | None:
        return TakenJob(self.jobs.pop(0)) if self.jobs else None


class BrokenEngine:
    """Refuses every job with the same error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def submit(self, job: Job) -> None:
        raise self.error

    def cancel(self, job_id: str) -> None:
        raise AssertionError(job_id)


@pytest.fixture
def writer() -> MemoryWriter:
    return MemoryWriter()


@pytest.fixture
def sink(writer: MemoryWriter) -> Iterator[RelaySink]:
    sink = RelaySink(writer, cancel=lambda job: None)
    sink.start()
    yield sink
    sink.stop(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineError(ErrorCode.INVALID_PROMPT, "no"), ErrorCode.INVALID_PROMPT),
        (RuntimeError("a bug"), ErrorCode.INTERNAL_ERROR),
    ],
)
def test_a_job_that_cannot_be_submitted_ends_and_the_slot_goes_on(
    error: Exception, code: ErrorCode, writer: MemoryWriter, sink: RelaySink
) -> None:
    Slots(ListedJobs(), None, "r", BrokenEngine(error), sink).take_jobs()  # type: ignore[arg-type]
    ends = {job: event for job, _, _, event in writer.rows}
    assert set(ends) == {"a", "b"}
    assert all(isinstance(end, Failed) and end.code == code for end in ends.values())
