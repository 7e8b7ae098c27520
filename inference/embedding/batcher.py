"""How does one batch of embeddings go? Take inputs in turn, compute, tell."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from inference.backend.base import DecodeError, Embedder
from inference.embedding.telling import tell_token_rows, tell_vectors
from inference.embedding.vectors import Rows
from inference.embedding.work import EmbeddingWork, Room, Share, take_batch
from inference.engine.counters import Counters
from inference.engine.runner import EventSink
from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason, Started, Timings
from inference.protocol.jobs import EmbeddingJob
from inference.protocol.replicas import EngineStats

logger = logging.getLogger(__name__)


class Batcher:
    """All embedding jobs of one context, one batch at a time. Owned by one thread."""

    def __init__(
        self, embedder: Embedder, sink: EventSink, clock: Callable[[], float] = time.time
    ) -> None:
        self._embedder = embedder
        self._room = Room.of(embedder)
        self._is_pooled = embedder.model.facts().pooling != "none"
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

    def step(self, max_tokens: int | None = None) -> None:
        """Compute one batch, of ``max_tokens`` where inputs can be split, and tell its vectors."""
        now = self._clock()
        for work in list(self._works.values()):
            if now > work.job.deadline:
                self._fail(work, ErrorCode.DEADLINE_EXCEEDED, "The request ran out of time.")
        limit = self._embedder.max_batch_tokens
        shares = take_batch(self._line, self._room, min(limit, max_tokens or limit))
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

    def check_integrity(self) -> None:
        """Assert what must hold between steps; for tests and idle moments."""
        begun = [work.seq_id for work in self._works.values() if work.num_begun]
        assert len(set(begun)) == len(begun)
        assert self._room.num_held == len(begun)
        assert {id(work) for work in self._line} <= {id(work) for work in self._works.values()}

    def stats(self) -> EngineStats:
        """Give the counters and gauges of now; safe from any thread. All jobs share the batches."""
        return EngineStats(**vars(self._counters), num_running=len(self._works))

    def _compute(self, shares: Sequence[Share], now: float) -> None:
        for share in shares:
            if not share.work.started_at:
                share.work.started_at = time.perf_counter()
                self._tell(share.work, Started(0, 0))
        started = time.perf_counter()
        try:
            self._deliver(*self._embed(shares))
        finally:  # a bug must not keep the places of inputs: there are few
            for share in shares:
                if share.part.is_last:
                    self._let_go(share.part.seq_id)
        num_tokens = sum(len(share.part.tokens) for share in shares)
        self._counters.count_embedding(num_tokens, time.perf_counter() - started, now)

    def _embed(self, shares: Sequence[Share]) -> tuple[Sequence[Share], Sequence[Rows]]:
        """Compute a batch; gives what could be computed, and its rows."""
        try:
            return shares, self._embedder.embed([share.part for share in shares])
        except DecodeError as error:
            logger.warning("a batch of %d inputs failed: %s", len(shares), error)
            return self._embed_one_by_one(shares)

    def _embed_one_by_one(self, shares: Sequence[Share]) -> tuple[list[Share], list[Rows]]:
        """Retry a failed batch input by input, so that only the culprit's job fails."""
        computed: list[Share] = []
        tables: list[Rows] = []
        for share in shares:
            if share.work.job.id not in self._works:
                continue
            try:
                tables += self._embedder.embed([share.part])
            except DecodeError as error:
                logger.error("job %s cannot be computed: %s", share.work.job.id, error)
                self._fail_input(share)
                continue
            computed.append(share)
        return computed, tables

    def _deliver(self, shares: Sequence[Share], tables: Sequence[Rows]) -> None:
        """Tell each job its vectors; a job whose last ones these are ends."""
        by_job: dict[str, list[tuple[Share, Rows]]] = {}
        for share, rows in zip(shares, tables, strict=True):
            if not np.isfinite(rows).all():
                logger.error("job %s got numbers that are not finite", share.work.job.id)
                self._fail_input(share)
            else:
                by_job.setdefault(share.work.job.id, []).append((share, rows))
        for job_id, due in by_job.items():
            if job_id in self._works:
                self._tell_rows(self._works[job_id], due)

    def _tell_rows(self, work: EmbeddingWork, due: Sequence[tuple[Share, Rows]]) -> None:
        if self._is_pooled:
            first = due[0][0].input
            events = tell_vectors(work.job, first, np.concatenate([rows for _, rows in due]))
        else:
            events = chain.from_iterable(tell_token_rows(share.input, rows) for share, rows in due)
        for event in events:
            self._tell(work, event)
        work.num_done += sum(share.part.is_last for share, _ in due)
        if work.num_done == len(work.job.inputs):
            self._counters.num_jobs_done += 1
            self._end(work, self._describe_done(work, FinishReason.EOS))

    def _describe_done(self, work: EmbeddingWork, reason: FinishReason) -> Done:
        num_tokens = work.num_done_tokens
        begun = work.started_at or time.perf_counter()
        milliseconds = (time.perf_counter() - begun) * 1000
        return Done(reason, num_tokens, 0, 0, timings=Timings(milliseconds, 0.0, num_tokens))

    def _fail_input(self, share: Share) -> None:
        if share.work.job.id in self._works:
            message = f"The model failed on input {share.input} of this request."
            self._fail(share.work, ErrorCode.ENGINE_FAILED, message)

    def _fail(
        self, work: EmbeddingWork, code: ErrorCode, message: str, *, is_retryable: bool = False
    ) -> None:
        self._counters.num_jobs_failed += 1
        self._end(work, Failed(code, message, is_retryable, work.num_done_tokens))

    def _end(self, work: EmbeddingWork, event: Event) -> None:
        del self._works[work.job.id]
        if not work.is_taken:
            self._line.remove(work)
        if work.num_begun:
            self._let_go(work.seq_id)
        self._tell(work, event)

    def _let_go(self, seq_id: int) -> None:
        """Give back what an input holds."""
        self._embedder.drop(seq_id)
        self._room.end(seq_id)

    def _tell(self, work: EmbeddingWork, event: Event) -> None:
        self._events.append((work.job.id, event))
