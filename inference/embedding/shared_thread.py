"""Where does a model run that both generates and embeds? On one thread, with a context for each."""

from pathlib import Path

import msgspec

from inference.backend.base import Backend, Embedder
from inference.embedding.admission import check_inputs
from inference.embedding.batcher import Batcher
from inference.embedding.turns import Turns
from inference.engine.admission import admit
from inference.engine.command_thread import CommandThread
from inference.engine.engine import Engine
from inference.engine.runner import EventSink
from inference.engine.sequence import Sequence
from inference.engine.thread import yield_sooner
from inference.protocol.jobs import EmbeddingJob, Job
from inference.protocol.replicas import EngineStats, RuntimeProfile, SlotStats


class SharedThread:
    """Runs a generative model that serves embeddings too; implements Runner.

    Two threads would fight for the same cores: each decode uses all of them.
    """

    def __init__(
        self,
        backend: Backend,
        embedder: Embedder,
        profile: RuntimeProfile,
        sink: EventSink,
        *,
        draft_backend: Backend | None = None,
        spill_directory: Path | None = None,
    ) -> None:
        self._backend, self._profile = backend, profile
        self._facts = embedder.model.facts()
        self._engine = Engine(
            backend, profile, sink, draft_backend=draft_backend, spill_directory=spill_directory
        )
        self._batcher = Batcher(embedder, sink)
        turns = Turns(self._engine, self._batcher, profile.prefill_chunk)
        self._thread: CommandThread[Sequence | EmbeddingJob] = CommandThread(turns, "engine")

    def start(self) -> None:
        """Begin to work."""
        yield_sooner()
        self._thread.start()

    def stop(self) -> None:
        """End what runs, as lost and worth a retry elsewhere; free the contexts."""
        self._thread.stop()

    def submit(self, job: Job) -> None:
        """Take a job of either kind; raises EngineError where it can never run."""
        self._thread.check_running()
        if isinstance(job, EmbeddingJob):
            check_inputs(job, self._facts)
            self._thread.add(job)
        else:
            self._thread.add(admit(job, self._backend, self._profile))

    def cancel(self, job_id: str) -> None:
        """End a job before the next step."""
        self._thread.cancel(job_id)

    def stats(self) -> EngineStats:
        """Give the counters and gauges of both halves, added up; cheap."""
        mine, theirs = self._engine.stats(), self._batcher.stats()
        added = {
            name: getattr(mine, name) + getattr(theirs, name) for name in mine.__struct_fields__
        }
        latest = max(mine.last_step_at, theirs.last_step_at)
        return msgspec.convert(added | {"last_step_at": latest}, EngineStats)

    def slots(self) -> tuple[SlotStats, ...]:
        """Describe each seat of generation; inputs share batches, not seats."""
        return self._engine.slots()
