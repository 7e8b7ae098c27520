"""Which sequences begin alike, and when does it pay to attend to their beginning together?"""

from collections.abc import Iterable, Mapping, Set

from inference.backend.passes import count_passes

MIN_MEMBERS = 4
"""Sequences that make a group worth its moves."""

MIN_LENGTH = 128
"""Tokens of a beginning that make a group worth its moves."""

GAIN = 4.0
"""How many cells are attended in a group in the time of one outside.

There all tokens of a call attend to all cells in one product of matrices, also to those of others,
which are masked; outside each sequence attends to its own (benchmarks/prefix_groups.py).
"""

PASS_BYTES = 12.0
"""How many bytes of weights a pass reads in the time in which a sequence attends to one of a cell.

With SmolLM2 on one core a pass more takes as long as 300 cells, of 23 kB each.
"""

# To begin takes more than to go on, so that no group comes and goes.
_MARGIN = 1.5


class Group:
    """Sequences whose first ``length`` tokens are the same."""

    __slots__ = ("length", "members")

    def __init__(self, length: int) -> None:
        self.length = length
        self.members: set[int] = set()


class PrefixGroups:
    """Which sequences got their beginning from each other. Knows no tokens, only who copied what.

    A sequence is in one group at most.
    """

    def __init__(self) -> None:
        self._groups: dict[int, Group] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def of(self, seq_id: int) -> Group | None:
        """Give the group of a sequence."""
        return self._groups.get(seq_id)

    def note_copy(self, source: int, target: int, num_tokens: int) -> Group | None:
        """Note that a sequence now has the first tokens of another; returns the group of both.

        None where they have too little in common. Prompts often share a few tokens by chance
        beyond what all have, so what a group shares may become less, but not much less.
        """
        self.forget(target)
        group = self._groups.get(source)
        if num_tokens < MIN_LENGTH or (group and 2 * num_tokens < group.length):
            return None
        if group is None:
            group = self._groups[source] = Group(num_tokens)
            group.members.add(source)
        group.length = min(group.length, num_tokens)
        group.members.add(target)
        self._groups[target] = group
        return group

    def note_cut(self, seq_id: int, num_tokens: int) -> None:
        """Note that a sequence has only its first tokens now."""
        group = self._groups.get(seq_id)
        if group and num_tokens < group.length:
            self.forget(seq_id)

    def forget(self, seq_id: int) -> None:
        """Note that a sequence is something else now; who is left alone is no group."""
        group = self._groups.pop(seq_id, None)
        if group is None:
            return
        group.members.discard(seq_id)
        if len(group.members) == 1:
            del self._groups[group.members.pop()]

    def largest_among(self, seq_ids: Iterable[int]) -> Group | None:
        """Give the group that most of these are in."""
        counts: dict[Group, int] = {}
        for seq_id in seq_ids:
            if group := self._groups.get(seq_id):
                counts[group] = counts.get(group, 0) + 1
        return max(counts, key=lambda one: counts[one], default=None)


def count_cells(length: int, lengths: Iterable[int]) -> int:
    """Tell how many cells hold sequences of these lengths, their beginning once."""
    return length + sum(max(0, one - length) for one in lengths)


def is_worth(
    group: Group, lengths: Mapping[int, int], others: Set[int], pass_cells: float, *, is_on: bool
) -> bool:
    """Tell whether to compute these sequences as a group, beside others in a step.

    ``lengths`` are their tokens. The others need passes of their own: to read all weights once more
    takes as long as to attend to ``pass_cells``. Where others sit between the members, they are
    no neighbours once those are gone.
    """
    num_members = len(lengths)
    if num_members < MIN_MEMBERS - is_on:
        return False
    num_passes = 1 + _count_passes(others) - _count_passes(lengths.keys() | others)
    more = max(0, num_passes) * pass_cells
    together = num_members * count_cells(group.length, lengths.values()) / GAIN
    return (more + together) * (1.0 if is_on else _MARGIN) < sum(lengths.values())


def _count_passes(seq_ids: Set[int]) -> int:
    """Count those of a step that gives each of these sequences a token."""
    return count_passes(sorted(seq_ids), [1] * len(seq_ids))
