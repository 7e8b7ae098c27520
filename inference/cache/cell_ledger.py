"""How many cells does the KV cache really hold, where sequences may share them?"""


class _Run:
    """Cells next to each other in some sequences: they are freed with the last of those."""

    __slots__ = ("num_cells", "slots")

    def __init__(self, num_cells: int, slots: set[int]) -> None:
        self.num_cells = num_cells
        self.slots = slots


class CellLedger:
    """The cells of each slot's sequence, in order, every cell counted once.

    In a unified cache a copy shares the cells of its source; in a split one it has its own.
    """

    def __init__(self, num_slots: int, num_cells: int, *, is_shared: bool) -> None:
        self.num_cells = num_cells
        self.num_used = 0
        self._is_shared = is_shared
        self._runs: list[list[_Run]] = [[] for _ in range(num_slots)]
        self._lengths = [0] * num_slots

    def length(self, slot: int) -> int:
        """Give the number of cells of a slot's sequence, shared ones included."""
        return self._lengths[slot]

    def num_held_by(self, slots: set[int]) -> int:
        """Give the number of cells that would be free without these slots."""
        runs = {id(run): run for slot in slots for run in self._runs[slot]}
        return sum(run.num_cells for run in runs.values() if run.slots <= slots)

    def extend(self, slot: int, num_cells: int) -> None:
        """Add computed cells at the end of a slot."""
        runs = self._runs[slot]
        if runs and len(runs[-1].slots) == 1:
            runs[-1].num_cells += num_cells
        elif num_cells:
            runs.append(_Run(num_cells, {slot}))
        self._lengths[slot] += num_cells
        self.num_used += num_cells

    def cut(self, slot: int, num_cells: int) -> None:
        """Drop all cells of a slot but the first."""
        self.drop(slot, num_cells, self._lengths[slot] - num_cells)

    def drop(self, slot: int, start: int, num_cells: int) -> None:
        """Drop cells from within a slot; those behind them move up."""
        first = self._split(slot, start)
        last = self._split(slot, start + num_cells)
        runs = self._runs[slot]
        for run in runs[first:last]:
            run.slots.discard(slot)
            if not run.slots:
                self.num_used -= run.num_cells
        del runs[first:last]
        self._lengths[slot] -= num_cells

    def copy(self, source: int, target: int, num_cells: int) -> None:
        """Make the cells of an empty slot those of another's beginning."""
        assert not self._runs[target]
        if not self._is_shared:
            self.extend(target, num_cells)
            return
        kept = self._split(source, num_cells)
        for run in self._runs[source][:kept]:
            run.slots.add(target)
            self._runs[target].append(run)
        self._lengths[target] = num_cells

    def check_integrity(self) -> None:
        """Assert what must always hold."""
        runs = {id(run): run for held in self._runs for run in held}
        assert self.num_used == sum(run.num_cells for run in runs.values()) <= self.num_cells
        for slot, held in enumerate(self._runs):
            assert self._lengths[slot] == sum(run.num_cells for run in held)
            assert all(run.num_cells and slot in run.slots for run in held)
        assert sum(map(len, self._runs)) == sum(len(run.slots) for run in runs.values())

    def _split(self, slot: int, num_cells: int) -> int:
        """Have a run end after so many cells of a slot; returns how many runs make them up."""
        assert 0 <= num_cells <= self._lengths[slot]
        at = 0
        for index, run in enumerate(self._runs[slot]):
            if at == num_cells:
                return index
            if at + run.num_cells > num_cells:
                self._divide(run, num_cells - at)
                return index + 1
            at += run.num_cells
        return len(self._runs[slot])

    def _divide(self, run: _Run, length: int) -> None:
        """Make two of one run, in all slots that have it."""
        rest = _Run(run.num_cells - length, set(run.slots))
        run.num_cells = length
        for slot in run.slots:
            runs = self._runs[slot]
            runs.insert(runs.index(run) + 1, rest)
