"""Who sits in which slot, and who waits for one?"""

from collections import deque

from inference.backend.base import Backend
from inference.cache.prefix_cache import PrefixCache
from inference.engine.sequence import Sequence, SequenceState
from inference.protocol.replicas import SlotStats


class Seats:
    """The slots of the batch and the line before them; owned by the engine's thread."""

    def __init__(self, backend: Backend, cache: PrefixCache, num_slots: int) -> None:
        self._backend, self._cache = backend, cache
        self._waiting: deque[Sequence] = deque()
        self._seated: list[Sequence] = []
        self._slots: list[Sequence | None] = [None] * num_slots

    @property
    def num_waiting(self) -> int:
        """How many sequences have no slot yet."""
        return len(self._waiting)

    @property
    def num_seated(self) -> int:
        """How many slots are taken."""
        return len(self._seated)

    @property
    def running(self) -> list[Sequence]:
        """The sequences that compute, in order of arrival."""
        return [seq for seq in self._seated if seq.state is SequenceState.RUNNING]

    def add(self, sequence: Sequence) -> None:
        """Put a sequence at the end of the line."""
        self._waiting.append(sequence)

    def fill(self, now: float) -> list[Sequence]:
        """Seat who waits, start who may; returns those that started, their prefixes in place."""
        self._place_waiting()
        return self._start_held(now)

    def leave(self, sequence: Sequence, *, keeps_cells: bool) -> None:
        """Take a sequence out of its slot or of the line; its cells may serve others."""
        if sequence.state is SequenceState.WAITING:
            self._waiting.remove(sequence)
        else:
            self._seated.remove(sequence)
            self._slots[sequence.slot] = None
            self._cache.release(sequence.slot, keeps_cells=keeps_cells)
            if not keeps_cells:
                self._backend.keep_prefix(sequence.slot, 0)
        sequence.state = SequenceState.FINISHED

    def describe(self) -> tuple[SlotStats, ...]:
        """Describe each slot; safe from any thread."""
        return tuple(
            sequence.describe() if sequence is not None else SlotStats(id=slot)
            for slot, sequence in enumerate(self._slots)
        )

    def check_integrity(self) -> None:
        """Assert what must hold between steps."""
        seated = [sequence for sequence in self._slots if sequence is not None]
        assert sorted(map(id, seated)) == sorted(map(id, self._seated))
        for sequence in self._seated:
            assert sequence.num_computed < sequence.num_tokens

    def _place_waiting(self) -> None:
        """Seat waiting sequences in order of arrival, on the lowest free slots.

        Those that come in one step are seated by length: llama.cpp computes neighbours of equal
        length in one pass, and what is left of the longer ones in the next.
        """
        if not self._waiting:
            return
        slots = self._cache.free_slots()[: len(self._waiting)]
        arrived = [self._waiting.popleft() for _ in slots]
        by_length = sorted(arrived, key=lambda sequence: sequence.num_prompt)
        for slot, sequence in zip(slots, by_length, strict=True):
            sequence.slot, sequence.state = slot, SequenceState.HELD
            self._slots[slot] = sequence
        for sequence in arrived:
            self._cache.lease(sequence.slot)
            self._seated.append(sequence)

    def _start_held(self, now: float) -> list[Sequence]:
        """Start seated sequences, unless another is about to have computed what they need."""
        started = []
        for sequence in self._seated:
            if sequence.state is not SequenceState.HELD:
                continue
            if sequence.awaits is not None and self._cache.is_catching_up(sequence.awaits):
                continue
            num_cached = self._lend_prefix(sequence)
            if num_cached is not None:
                self._cache.assign(sequence.slot, sequence.job.salt, sequence.tokens, num_cached)
                sequence.num_computed = sequence.num_cached = num_cached
                sequence.state, sequence.started_at = SequenceState.RUNNING, now
                started.append(sequence)
        return started

    def _lend_prefix(self, sequence: Sequence) -> int | None:
        """Put the best known prefix into the slot; None while a better one is being computed."""
        slot = sequence.slot
        if not sequence.job.cache_prompt or sequence.wants_prompt_rows:
            return self._backend.keep_prefix(slot, 0)
        match = self._cache.find_prefix(slot, sequence.job.salt, sequence.tokens)
        if self._cache.is_catching_up(match):
            sequence.awaits = match
            return None
        if match.slot == slot:
            return self._backend.keep_prefix(slot, match.num_tokens)
        return self._backend.copy_prefix(match.slot, slot, match.num_tokens)
