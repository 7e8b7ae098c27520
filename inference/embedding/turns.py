"""How do chat and embeddings of one model share a thread? In turns, by the time each took."""

import logging
import time
from collections.abc import Callable

from inference.embedding.batcher import Batcher
from inference.engine.engine import Engine
from inference.engine.sequence import Sequence
from inference.protocol.errors import ErrorCode
from inference.protocol.jobs import EmbeddingJob

logger = logging.getLogger(__name__)

_MAX_FAILURES = 10
"""Batches in a row that may fail by a bug before the thread is told, which then gives up."""


class Turns:
    """An engine and a batcher as one stepper, owned by one thread.

    While both have work, a batch of embeddings has ``slice_tokens`` tokens at most, and after one
    that took t seconds the engine steps for t seconds before the next. So decoding sequences are
    held back by one slice at most, as by a neighbour's prompt, and embeddings wait no longer than
    a slice takes, or one step of the engine.
    """

    def __init__(
        self,
        engine: Engine,
        batcher: Batcher,
        slice_tokens: int,
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._engine, self._batcher = engine, batcher
        self._slice_tokens = slice_tokens
        self._timer = timer
        self._owed_seconds = 0.0
        self._num_failures = 0

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return self._engine.has_work or self._batcher.has_work

    def add(self, work: Sequence | EmbeddingJob) -> None:
        """Take work in."""
        if isinstance(work, EmbeddingJob):
            self._batcher.add(work)
        else:
            self._engine.add(work)

    def cancel(self, job_id: str) -> None:
        """End a job of either kind; unknown ids are ignored."""
        self._engine.cancel(job_id)
        self._batcher.cancel(job_id)

    def step(self) -> None:
        """Let one of the two move on, or the only one that has work."""
        if not self._engine.has_work:
            self._owed_seconds = 0.0
            self._embed(None)
        elif self._batcher.has_work and self._owed_seconds <= 0:
            self._owed_seconds = self._time(lambda: self._embed(self._slice_tokens))
        else:
            self._owed_seconds -= self._time(self._engine.step)
            self._batcher.flush()

    def fail_all(self, code: ErrorCode, message: str) -> None:
        """End every job badly, with an invitation to try again."""
        self._engine.fail_all(code, message)
        self._batcher.fail_all(code, message)

    def flush(self) -> None:
        """Tell what has not been told."""
        self._engine.flush()
        self._batcher.flush()

    def close(self) -> None:
        """Free both contexts."""
        self._batcher.close()
        self._engine.close()

    def _embed(self, max_tokens: int | None) -> None:
        try:
            self._batcher.step(max_tokens)
            self._num_failures = 0
        except Exception:  # a bug in one half must not cost the jobs of the other
            self._num_failures += 1
            if self._num_failures > _MAX_FAILURES:
                raise
            logger.exception("a batch of embeddings failed")
            self._batcher.fail_all(ErrorCode.ENGINE_FAILED, "The engine failed.")
            self._batcher.flush()

    def _time(self, act: Callable[[], None]) -> float:
        started = self._timer()
        act()
        return self._timer() - started
