"""Where are embeddings computed? On one thread, fed by commands, asleep when there is no work."""

import logging
import threading
from dataclasses import dataclass
from queue import SimpleQueue

from inference.backend.base import Embedder
from inference.embedding.batcher import Batcher, EventSink
from inference.engine.admission import check_tokens
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.jobs import EmbeddingJob, Job
from inference.protocol.replicas import EngineStats, SlotStats

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Add:
    job: EmbeddingJob


@dataclass(frozen=True, slots=True)
class _Cancel:
    job_id: str


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


class EmbeddingThread:
    """The only thread that touches the embedding context; others send it commands."""

    def __init__(self, embedder: Embedder, sink: EventSink) -> None:
        self._facts = embedder.model.facts()
        self._batcher = Batcher(embedder, sink)
        self._commands: SimpleQueue[_Add | _Cancel | _Stop] = SimpleQueue()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="embedding", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """End what runs, as lost and worth a retry elsewhere; free the context."""
        self._commands.put(_Stop())
        self._thread.join()

    def submit(self, job: Job) -> None:
        """Take a job; raises EngineError where it can never run, naming the input at fault."""
        if self._is_stopping:
            raise EngineError(ErrorCode.ENGINE_LOST, "The replica is stopping.", is_retryable=True)
        if not isinstance(job, EmbeddingJob):
            raise EngineError(
                ErrorCode.WRONG_MODEL_KIND, "This is an embedding model; it does not generate text."
            )
        if not job.inputs:
            raise EngineError(ErrorCode.INVALID_PROMPT, "There is nothing to embed.")
        for index, tokens in enumerate(job.inputs):
            self._check_input(index, tokens)
        self._commands.put(_Add(job))

    def cancel(self, job_id: str) -> None:
        """End a job before the next batch."""
        self._commands.put(_Cancel(job_id))

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

    def _run(self) -> None:
        batcher = self._batcher
        while not self._is_stopping:
            try:
                self._obey()
                batcher.step()
            except Exception:  # a bug must cost the jobs it met, never the replica
                logger.exception("an embedding step failed")
                batcher.fail_all(ErrorCode.ENGINE_FAILED, "The engine failed.")
                batcher.flush()
        while not self._commands.empty():
            match self._commands.get():
                case _Add(job):
                    batcher.add(job)
                case _:
                    continue
        batcher.fail_all(ErrorCode.ENGINE_LOST, "The replica stopped.")
        batcher.flush()
        batcher.close()

    def _obey(self) -> None:
        """Carry out all commands; sleep for the first one when there is nothing to do."""
        while not self._commands.empty() or not self._batcher.has_work:
            match self._commands.get():
                case _Add(job):
                    self._batcher.add(job)
                case _Cancel(job_id):
                    self._batcher.cancel(job_id)
                case _Stop():
                    self._is_stopping = True
                    return
