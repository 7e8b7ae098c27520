"""How does one step of all sequences go? Plan, compute, settle, tell."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from inference.backend.base import Backend
from inference.engine.compute import Computer
from inference.engine.context_shift import ContextShift
from inference.engine.counters import Counters
from inference.engine.independence import count_independent
from inference.engine.lending import build_cache
from inference.engine.plan import StepPlan
from inference.engine.pressure import Pressure
from inference.engine.roster import Roster
from inference.engine.runner import EventSink
from inference.engine.scheduler import Scheduler
from inference.engine.seats import Seats
from inference.engine.sequence import Sequence
from inference.engine.settle import Settler
from inference.engine.slice_cost import SliceCost
from inference.engine.speculation import open_speculator
from inference.protocol.errors import ErrorCode
from inference.protocol.events import FinishReason, Started
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
        *,
        spill_directory: Path | None = None,
        draft_backend: Backend | None = None,
    ) -> None:
        self._backend, self._clock = backend, clock
        max_together = 0
        if profile.is_deterministic:
            max_together = count_independent(backend, profile.num_slots)
        self._slice_cost = SliceCost()
        self._scheduler = Scheduler(profile, max_together, self._slice_cost)
        self._cache = build_cache(backend, profile, spill_directory)
        self._seats = Seats(backend, self._cache, profile.num_slots)
        self._speculator = open_speculator(backend, profile, draft_backend)
        self._counters = Counters()
        self._roster = Roster(self._seats, self._counters, sink, clock)
        settler = Settler(backend, self._cache, self._roster, self._counters, clock)
        self._shift = ContextShift(backend, self._cache, profile)
        self._pressure = Pressure(self._cache, self._seats, self._roster, self._counters)
        self._computer = Computer(backend, self._cache, self._roster, settler, self._pressure)

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(len(self._roster) or self._roster.has_events)

    def add(self, sequence: Sequence) -> None:
        """Take a sequence in; it waits for a slot in order of arrival."""
        if not self._roster.add(sequence):
            return
        emitted = sequence.job.emitted_tokens
        is_end = bool(emitted) and self._backend.model.is_end_of_generation(emitted[-1])
        reason = sequence.finish_reason(is_end=is_end)
        # Where no answer is asked for, a prompt is computed for its rows, or to warm the cache.
        is_warming = not emitted and sequence.job.cache_prompt
        if reason is not None and not (is_warming or sequence.wants_prompt_rows):
            self._roster.finish(sequence, reason)

    def cancel(self, job_id: str) -> None:
        """End a sequence at once; unknown ids are ignored, since jobs may have just ended."""
        sequence = self._roster.find(job_id)
        if sequence is not None:
            self._roster.finish(sequence, FinishReason.CANCELLED)

    def fail_all(self, code: ErrorCode, message: str) -> None:
        """End every sequence badly, with an invitation to try again.

        What failed may have left slots half changed: nothing that they hold is trusted any more.
        """
        for sequence in self._roster:
            self._roster.fail(sequence, code, message, is_retryable=True)
        self._seats.empty()

    def step(self) -> None:
        """Move every sequence on and tell what happened."""
        now = self._clock()
        self._expire(now)
        for sequence in self._seats.fill(now):
            self._counters.num_cached_tokens += sequence.num_cached
            self._roster.tell(sequence, Started(sequence.slot, sequence.num_cached))
        self._shift.make_room(self._seats.running)
        if self._speculator:
            self._speculator.draft(self._seats.running)
        plan = self._plan()
        if plan.passes:
            self._seats.make_room(plan.num_cells)
            started = time.perf_counter()
            self._computer.compute(plan)
            seconds = time.perf_counter() - started
            self._counters.count_step(plan, seconds, now)
            self._slice_cost.observe(plan, seconds)
            if self._speculator:
                self._speculator.observe(plan, seconds)
        self.flush()

    def _plan(self) -> StepPlan:
        """Plan the next step; sequences wait again until the rest of them has room for it."""
        while True:
            plan = self._scheduler.schedule(self._seats.running, self._seats.num_cells_left)
            if plan.victim is None:
                return plan
            self._pressure.preempt(plan.victim)

    def flush(self) -> None:
        """Hand the events so far to the sink."""
        self._roster.flush()

    def close(self) -> None:
        """Free the context; nothing may run any more."""
        self._cache.close()
        self._backend.close()
        if self._speculator:
            self._speculator.close()

    def check_integrity(self) -> None:
        """Assert what must hold between steps; for tests and idle moments."""
        self._cache.check_integrity()
        self._seats.check_integrity()
        assert len(self._roster) == self._seats.num_seated + self._seats.num_waiting

    def stats(self) -> EngineStats:
        """Give the counters and gauges of now; safe from any thread."""
        sharing = self._backend.sharing_among(self._seats.running_slots)
        return EngineStats(
            **vars(self._counters),
            num_running=self._seats.num_seated,
            num_waiting=self._seats.num_waiting,
            num_sharing=sharing.num_sequences,
            num_shared_tokens=sharing.num_tokens,
            kv_cells_used=self._cache.num_cells,
            kv_cells_total=self._cache.num_total_cells,
        )

    def slots(self) -> tuple[SlotStats, ...]:
        """Describe each seat; safe from any thread."""
        return self._seats.describe()

    def _expire(self, now: float) -> None:
        """End what has run past its deadline; what has text keeps it."""
        for sequence in self._roster:
            if now <= sequence.job.deadline:
                continue
            if sequence.num_generated:
                self._roster.finish(sequence, FinishReason.LENGTH)
            else:
                self._roster.fail(
                    sequence, ErrorCode.DEADLINE_EXCEEDED, "The request ran out of time."
                )
