"""Where are embeddings computed? On one thread, fed by commands, asleep when there is no work."""

from inference.backend.base import Embedder
from inference.embedding.batcher import Batcher
from inference.engine.admission import check_tokens
from inference.engine.command_thread import CommandThread
from inference.engine.runner import EventSink
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import EmbeddingJob, Job
from inference.protocol.replicas import EngineStats, SlotStats


class EmbeddingThread:
    """Runs the batches of an embedding model; implements Runner."""

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
            raise EngineError(
                ErrorCode.WRONG_MODEL_KIND, "This is an embedding model; it does not generate text."
            )
        if not job.inputs:
            raise EngineError(ErrorCode.INVALID_PROMPT, "There is nothing to embed.")
        for index, tokens in enumerate(job.inputs):
            self._check_input(index, tokens)
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

    def _check_input(self, index: int, tokens: tuple[int, ...]) -> None:
        if not tokens:
            raise EngineError(ErrorCode.INVALID_PROMPT, f"Input {index} is empty.")
        limit = self._facts.context_length
        if len(tokens) > limit:
            raise EngineError(
                ErrorCode.CONTEXT_LENGTH_EXCEEDED,
                f"Input {index} has {len(tokens)} tokens, but the model takes at most {limit}.",
            )
        try:
            check_tokens(tokens, self._facts.num_vocab)
        except EngineError as error:
            raise EngineError(error.code, f"Input {index}: {error.message}") from None
