"""Where are embeddings computed? On one thread, fed by commands, asleep when there is no work."""

from inference.backend.base import Embedder
from inference.embedding.admission import check_inputs
from inference.embedding.batcher import Batcher
from inference.engine.command_thread import CommandThread
from inference.engine.runner import EventSink
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import EmbeddingJob, Job
from inference.protocol.replicas import EngineStats, SlotStats


class EmbeddingThread:
    """Runs the batches of an embedding or reranking model; implements Runner."""

    def __init__(self, embedder: Embedder, sink: EventSink) -> None:
        self._facts = embedder.model.facts()
        self._batcher = Batcher(embedder, sink)
        self._thread: CommandThread[EmbeddingJob] = CommandThread(self._batcher, "embedding")

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """End what runs, as lost and worth a retry elsewhere; free the context."""
        self._thread.stop()

    def submit(self, job: Job) -> None:
        """Take a job; raises EngineError where it can never run, naming the input at fault."""
        self._thread.check_running()
        if not isinstance(job, EmbeddingJob):
            what = "a reranking" if self._facts.pooling == "rank" else "an embedding"
            raise EngineError(
                ErrorCode.WRONG_MODEL_KIND, f"This is {what} model; it does not generate text."
            )
        check_inputs(job, self._facts)
        self._thread.add(job)

    def cancel(self, job_id: str) -> None:
        """End a job before the next batch."""
        self._thread.cancel(job_id)

    def stats(self) -> EngineStats:
        """Give counters and gauges; cheap."""
        return self._batcher.stats()

    def slots(self) -> tuple[SlotStats, ...]:
        """Give nothing: inputs share batches, not seats."""
        return ()
