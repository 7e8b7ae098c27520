"""Who sits in which slot, and who waits for one?"""

from collections import deque

from inference.backend.base import Backend
from inference.cache.prefix_cache import PrefixCache
from inference.engine.lending import Lender
from inference.engine.placing import place
from inference.engine.reservations import count_admitted
from inference.engine.sequence import Sequence, SequenceState
from inference.protocol.replicas import SlotStats


class Seats:
    """The slots of the batch and the line before them; owned by the engine's thread."""

    def __init__(self, backend: Backend, cache: PrefixCache, num_slots: int) -> None:
        self._cache, self._lender = cache, Lender(backend, cache)
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

    @property
    def running_slots(self) -> tuple[int, ...]:
        """The slots whose sequences compute; safe from any thread."""
        return tuple(seq.slot for seq in self.running)

    @property
    def num_cells_left(self) -> int | None:
        """How many cells are free or may be freed; None where each slot has its own."""
        return None if self._cache.is_split else self._cache.num_available_cells

    def add(self, sequence: Sequence) -> None:
        """Put a sequence at the end of the line."""
        self._waiting.append(sequence)

    def fill(self, now: float) -> list[Sequence]:
        """Seat who waits, start who may; returns those that start for the first time.

        Their prefixes are in place then.
        """
        self._lender.begin_step()
        if self._waiting:
            self._place_waiting()
        started = self._start_held(now)
        for sequence in self._seated:
            self._lender.checkpoint(sequence)
        return started

    def make_room(self, num_cells: int) -> None:
        """Empty free slots, the coldest first, until so many cells are free."""
        if not self._cache.is_split:
            self._lender.make_room(num_cells)

    def empty(self) -> None:
        """Drop what all slots hold; nobody may be seated."""
        for slot in range(len(self._slots)):
            self._lender.empty(slot)

    def unseat(self, sequence: Sequence, *, keeps_cells: bool) -> None:
        """Have a running sequence wait again, first in line."""
        self._seated.remove(sequence)
        self._slots[sequence.slot] = None
        self._lender.release(sequence.slot, keeps_cells=keeps_cells)
        sequence.slot, sequence.state = -1, SequenceState.WAITING
        self._waiting.appendleft(sequence)

    def leave(self, sequence: Sequence, *, keeps_cells: bool) -> None:
        """Take a sequence out of its slot or of the line; its cells may serve others."""
        if sequence.state is SequenceState.WAITING:
            self._waiting.remove(sequence)
        else:
            self._seated.remove(sequence)
            self._slots[sequence.slot] = None
            # What has not begun to compute has not touched what was in its slot.
            is_untouched = sequence.state is SequenceState.HELD
            self._lender.release(sequence.slot, keeps_cells=keeps_cells or is_untouched)
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
        """Seat waiting sequences in order of arrival, as far as there are slots and cells."""
        num_free = len(self._slots) - len(self._seated)
        count = count_admitted(self._waiting, self._seated, num_free, self.num_cells_left)
        arrived = [self._waiting.popleft() for _ in range(count)]
        for sequence, slot in place(self._cache, arrived, len(self._slots)):
            sequence.slot, sequence.state = slot, SequenceState.HELD
            self._slots[slot] = sequence
            self._cache.lease(slot)
            self._seated.append(sequence)

    def _start_held(self, now: float) -> list[Sequence]:
        """Start seated sequences, unless another is about to have computed what they need."""
        started: list[Sequence] = []
        is_urgent = not any(sequence.is_decoding for sequence in self.running)
        for sequence in self._seated:
            if sequence.state is not SequenceState.HELD:
                continue
            awaited = sequence.awaits
            if awaited is not None and self._cache.is_catching_up(awaited, is_awaited=True):
                continue
            num_cached = self._lender.lend(sequence, is_urgent=is_urgent)
            if num_cached is None:
                continue
            if sequence.start(num_cached, now):
                started.append(sequence)
        return started
