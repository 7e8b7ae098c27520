"""Which sequences are in the context whose cells are shared, and how many cells do they take?"""

from collections.abc import Iterator, Mapping

from inference.backend.prefix_groups import Group, count_cells

# Those that decode are in one of the two calls of a step.
_CALLS_OF_A_STEP = 2


class Residents:
    """Sequences, each with the group in which it came, and when each was last computed.

    What is left of a group whose requests have ended stays beside another's: it takes cells, but
    nobody computes it.
    """

    def __init__(self) -> None:
        self._groups: dict[int, Group] = {}
        self._last_calls: dict[int, int] = {}

    def __contains__(self, seq_id: int) -> bool:
        return seq_id in self._groups

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._groups))

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, seq_id: int, group: Group) -> None:
        """Take a sequence in."""
        self._groups[seq_id] = group

    def discard(self, seq_id: int) -> None:
        """Forget a sequence, if it is here."""
        self._groups.pop(seq_id, None)

    def group_of(self, seq_id: int) -> Group | None:
        """Give the group in which a sequence came; None where it is not here."""
        return self._groups.get(seq_id)

    def mate_of(self, group: Group) -> int | None:
        """Find a sequence of a group; None where there is none."""
        return next((seq_id for seq_id, its in self._groups.items() if its is group), None)

    def note_call(self, seq_id: int, call: int) -> None:
        """Note in which call a sequence, here or elsewhere, was computed."""
        self._last_calls[seq_id] = call

    def are_idle(self, call: int) -> bool:
        """Tell whether none of them was computed in the last step before this call."""
        last = max((self._last_calls.get(seq_id, 0) for seq_id in self._groups), default=0)
        return not self._groups or call - last >= _CALLS_OF_A_STEP

    def num_cells(self, lengths: Mapping[int, int]) -> int:
        """Tell how many cells they take, the beginning of each group once."""
        of_groups: dict[Group, list[int]] = {}
        for seq_id, group in self._groups.items():
            of_groups.setdefault(group, []).append(lengths[seq_id])
        return sum(count_cells(group.length, those) for group, those in of_groups.items())
