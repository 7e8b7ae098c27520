"""How does one step of all sequences go? Plan, compute, sample, tell."""

import logging
import time
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf

import numpy as np
from numpy.typing import NDArray

from inference.backend.base import Backend, DecodeError, Row
from inference.cache.prefix_cache import PrefixCache
from inference.engine.counters import Counters
from inference.engine.ending import describe_end, drain_tokens
from inference.engine.plan import Piece, StepPlan
from inference.engine.runner import EventSink
from inference.engine.scheduler import Scheduler
from inference.engine.seats import Seats
from inference.engine.sequence import Sequence
from inference.protocol.errors import ErrorCode
from inference.protocol.events import Event, Failed, FinishReason, Progress, Started
from inference.protocol.replicas import EngineStats, RuntimeProfile, SlotStats

logger = logging.getLogger(__name__)


class Engine:
    """All sequences of one backend, moved on one step at a time. Owned by one thread.

    ``stats`` and ``slots`` may be called from any thread; all else belongs to the owner.
    """

    def __init__(
        self,
        backend: Backend,
        profile: RuntimeProfile,
        sink: EventSink,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._backend, self._model = backend, backend.model
        self._scheduler = Scheduler(profile)
        self._num_cells = profile.num_slots * self._model.facts().context_length
        self._cache = PrefixCache(profile.num_slots)
        self._seats = Seats(backend, self._cache, profile.num_slots)
        self._sink, self._clock = sink, clock
        self._counters = Counters()
        self._sequences: dict[str, Sequence] = {}
        self._events: list[tuple[str, Event]] = []

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._sequences or self._events)

    def add(self, sequence: Sequence) -> None:
        """Take a sequence in; it waits for a slot in order of arrival."""
        if sequence.job.id in self._sequences:
            logger.warning("job %s is here already", sequence.job.id)
            sequence.sampler.close()
            return
        self._sequences[sequence.job.id] = sequence
        self._seats.add(sequence)
        if sequence.limit <= 0:
            self._finish(sequence, FinishReason.LENGTH)

    def cancel(self, job_id: str) -> None:
        """End a sequence at once; unknown ids are ignored, since jobs may have just ended."""
        sequence = self._sequences.get(job_id)
        if sequence is not None:
            self._finish(sequence, FinishReason.CANCELLED)

    def fail_all(self, code: ErrorCode, message: str) -> None:
        """End every sequence badly, with an invitation to try again."""
        for sequence in list(self._sequences.values()):
            self._fail(sequence, code, message, is_retryable=True)

    def step(self) -> None:
        """Move every sequence on and tell what happened."""
        now = self._clock()
        self._expire(now)
        for sequence in self._seats.fill(now):
            self._counters.num_cached_tokens += sequence.num_cached
            self._tell(sequence, Started(sequence.slot, sequence.num_cached))
        plan = self._scheduler.schedule(self._seats.running)
        if plan.pieces:
            started = time.perf_counter()
            self._compute(plan)
            self._counters.count_step(plan, time.perf_counter() - started, now)
        self.flush()

    def flush(self) -> None:
        """Hand the events so far to the sink."""
        if not self._events:
            return
        events, self._events = self._events, []
        self._sink(events)

    def close(self) -> None:
        """Free the context; nothing may run any more."""
        self._backend.close()

    def check_integrity(self) -> None:
        """Assert what must hold between steps; for tests and idle moments."""
        self._cache.check_integrity()
        self._seats.check_integrity()
        assert len(self._sequences) == self._seats.num_seated + self._seats.num_waiting

    def stats(self) -> EngineStats:
        """Give the counters and gauges of now; safe from any thread."""
        return EngineStats(
            **vars(self._counters),
            num_running=self._seats.num_seated,
            num_waiting=self._seats.num_waiting,
            kv_cells_used=self._cache.num_cells,
            kv_cells_total=self._num_cells,
        )

    def slots(self) -> tuple[SlotStats, ...]:
        """Describe each seat; safe from any thread."""
        return self._seats.describe()

    def _expire(self, now: float) -> None:
        """End what has run past its deadline; what has text keeps it."""
        for sequence in list(self._sequences.values()):
            if now <= sequence.job.deadline:
                continue
            if sequence.num_generated:
                self._finish(sequence, FinishReason.LENGTH)
            else:
                self._fail(sequence, ErrorCode.DEADLINE_EXCEEDED, "The request ran out of time.")

    def _compute(self, plan: StepPlan) -> None:
        try:
            rows = self._backend.decode([piece.to_slice() for piece in plan.pieces])
        except DecodeError as error:
            logger.warning("a step of %d sequences failed: %s", len(plan.pieces), error)
            self._compute_one_by_one(plan)
            return
        self._apply(plan.pieces, rows)

    def _compute_one_by_one(self, plan: StepPlan) -> None:
        """Retry a failed step sequence by sequence, so that only the culprit fails."""
        for piece in plan.pieces:
            sequence = piece.sequence
            kept = self._backend.keep_prefix(sequence.slot, sequence.num_computed)
            try:
                if kept != sequence.num_computed:
                    raise DecodeError(0)
                rows = self._backend.decode([piece.to_slice()])
            except DecodeError as error:
                logger.error("job %s cannot be computed: %s", sequence.job.id, error)
                self._fail(sequence, ErrorCode.ENGINE_FAILED, "The model failed on this request.")
                continue
            self._apply((piece,), rows)

    def _apply(self, pieces: SequenceOf[Piece], rows: NDArray[np.float32]) -> None:
        """Note what was computed, and sample where a prompt or a token is complete."""
        at = 0
        for piece in pieces:
            sequence, is_complete = piece.sequence, piece.completes
            sequence.num_computed += piece.num_tokens
            self._cache.advance(sequence.slot, sequence.num_computed)
            if not sequence.is_decoding:
                self._tell_progress(sequence, piece)
            if is_complete:
                self._sample(sequence, rows[at])
                at += 1

    def _sample(self, sequence: Sequence, row: Row) -> None:
        try:
            choice = sequence.sampler.sample(row)
            is_end = self._model.is_end_of_generation(choice.token)
            data = b"" if is_end else self._model.text_bytes(choice.token)
            if not sequence.is_decoding:
                sequence.first_token_at = self._clock()
            sequence.append(choice.token, choice.logprob, data)
        except Exception:  # whatever one sequence does must not end the others
            logger.exception("job %s cannot be sampled", sequence.job.id)
            self._fail(sequence, ErrorCode.INTERNAL_ERROR, "The request failed while sampling.")
            return
        self._counters.num_decoded_tokens += 1
        reason = sequence.finish_reason(is_end=is_end)
        if reason is not None:
            self._finish(sequence, reason)
        elif sequence.job.stream:
            self._tell(sequence, drain_tokens(sequence))

    def _finish(self, sequence: Sequence, reason: FinishReason) -> None:
        """End a sequence well: the rest of its text, then the end."""
        self._retire(sequence, keeps_cells=True)
        for event in describe_end(sequence, reason, self._clock()):
            self._tell(sequence, event)
        if reason is FinishReason.CANCELLED:
            self._counters.num_jobs_cancelled += 1
        else:
            self._counters.num_jobs_done += 1

    def _fail(
        self, sequence: Sequence, code: ErrorCode, message: str, *, is_retryable: bool = False
    ) -> None:
        """End a sequence badly."""
        self._retire(sequence, keeps_cells=False)
        failed = Failed(code, message, is_retryable, sequence.num_prompt, sequence.num_generated)
        self._tell(sequence, failed)
        self._counters.num_jobs_failed += 1

    def _retire(self, sequence: Sequence, *, keeps_cells: bool) -> None:
        """Give back whatever a sequence holds: sampler, slot, place in line."""
        del self._sequences[sequence.job.id]
        sequence.sampler.close()
        self._seats.leave(sequence, keeps_cells=keeps_cells)

    def _tell_progress(self, sequence: Sequence, piece: Piece) -> None:
        """Tell how far a prompt is that takes more than one step."""
        if piece.num_tokens < sequence.num_prompt - sequence.num_cached:
            self._tell(sequence, Progress(sequence.num_computed, sequence.num_prompt))

    def _tell(self, sequence: Sequence, event: Event) -> None:
        self._events.append((sequence.job.id, event))
