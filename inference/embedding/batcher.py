"""How does one batch of embeddings go? Take inputs in turn, compute, tell."""

import logging
import time
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import DecodeError, Embedder
from inference.embedding.vectors import encode_row, normalize_rows
from inference.embedding.work import EmbeddingWork, Share, take_batch
from inference.engine.counters import Counters
from inference.engine.runner import EventSink
from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason, Started, Timings, Vectors
from inference.protocol.jobs import EmbeddingJob
from inference.protocol.replicas import EngineStats

logger = logging.getLogger(__name__)


class Batcher:
    """All embedding jobs of one context, one batch at a time. Owned by one thread."""

    def __init__(
        self, embedder: Embedder, sink: EventSink, clock: Callable[[], float] = time.time
    ) -> None:
        self._embedder = embedder
        self._sink, self._clock = sink, clock
        self._counters = Counters()
        self._line: deque[EmbeddingWork] = deque()
        self._works: dict[str, EmbeddingWork] = {}
        self._events: list[tuple[str, Event]] = []

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._works or self._events)

    def add(self, job: EmbeddingJob) -> None:
        """Take a job in, behind those that are here."""
        if job.id in self._works:
            logger.warning("job %s is here already", job.id)
            return
        work = self._works[job.id] = EmbeddingWork(job)
        self._line.append(work)

    def cancel(self, job_id: str) -> None:
        """End a job at once; unknown ids are ignored."""
        work = self._works.get(job_id)
        if work is not None:
            self._counters.num_jobs_cancelled += 1
            self._end(work, self._describe_done(work, FinishReason.CANCELLED))

    def fail_all(self, code: ErrorCode, message: str) -> None:
        """End every job badly, with an invitation to try again."""
        for work in list(self._works.values()):
            self._fail(work, code, message, is_retryable=True)

    def step(self) -> None:
        """Compute one batch and tell its vectors."""
        now = self._clock()
        for work in list(self._works.values()):
            if now > work.job.deadline:
                self._fail(work, ErrorCode.DEADLINE_EXCEEDED, "The request ran out of time.")
        limits = self._embedder.max_batch_tokens, self._embedder.max_batch_inputs
        shares = take_batch(self._line, *limits)
        if shares:
            self._compute(shares, now)
        self.flush()

    def flush(self) -> None:
        """Hand the events so far to the sink."""
        if self._events:
            events, self._events = self._events, []
            self._sink(events)

    def close(self) -> None:
        """Free the context."""
        self._embedder.close()

    def stats(self) -> EngineStats:
        """Give the counters and gauges of now; safe from any thread."""
        num_jobs, num_waiting = len(self._works), len(self._line)
        return EngineStats(
            **vars(self._counters),
            num_running=max(0, num_jobs - num_waiting),
            num_waiting=num_waiting,
        )

    def _compute(self, shares: list[Share], now: float) -> None:
        for share in shares:
            if not share.work.started_at:
                share.work.started_at = time.perf_counter()
                self._tell(share.work, Started(0, 0))
        started = time.perf_counter()
        try:
            rows = self._embedder.embed([tokens for share in shares for tokens in share.inputs])
        except DecodeError as error:
            logger.warning("a batch of %d jobs failed: %s", len(shares), error)
            self._compute_one_by_one(shares)
        else:
            at = 0
            for share in shares:
                self._deliver(share, rows[at : at + share.count])
                at += share.count
        self._count(shares, time.perf_counter() - started, now)

    def _compute_one_by_one(self, shares: list[Share]) -> None:
        """Retry a failed batch job by job, so that only the culprit fails."""
        for share in shares:
            try:
                rows = self._embedder.embed(share.inputs)
            except DecodeError as error:
                logger.error("job %s cannot be computed: %s", share.work.job.id, error)
                self._fail(share.work, ErrorCode.ENGINE_FAILED, "The model failed on this request.")
                continue
            self._deliver(share, rows)

    def _deliver(self, share: Share, rows: NDArray[np.float32]) -> None:
        """Tell the vectors of one job; a job whose last ones these are ends."""
        work = share.work
        if work.job.normalize:
            rows = normalize_rows(rows)
        vectors = tuple(map(encode_row, rows))
        self._tell(work, Vectors(share.first, rows.shape[1], vectors))
        work.num_done += share.count
        if work.num_done == len(work.job.inputs):
            self._counters.num_jobs_done += 1
            self._end(work, self._describe_done(work, FinishReason.EOS))

    def _describe_done(self, work: EmbeddingWork, reason: FinishReason) -> Done:
        num_tokens = sum(map(len, work.job.inputs[: work.num_done]))
        begun = work.started_at or time.perf_counter()
        milliseconds = (time.perf_counter() - begun) * 1000
        return Done(reason, num_tokens, 0, 0, timings=Timings(milliseconds, 0.0, num_tokens))

    def _fail(
        self, work: EmbeddingWork, code: ErrorCode, message: str, *, is_retryable: bool = False
    ) -> None:
        self._counters.num_jobs_failed += 1
        num_tokens = sum(map(len, work.job.inputs[: work.num_done]))
        self._end(work, Failed(code, message, is_retryable, num_tokens))

    def _end(self, work: EmbeddingWork, event: Event) -> None:
        del self._works[work.job.id]
        if work.num_left:
            self._line.remove(work)
        self._tell(work, event)

    def _count(self, shares: list[Share], seconds: float, now: float) -> None:
        num_tokens = sum(len(tokens) for share in shares for tokens in share.inputs)
        self._counters.count_embedding(num_tokens, seconds, now)

    def _tell(self, work: EmbeddingWork, event: Event) -> None:
        self._events.append((work.job.id, event))
