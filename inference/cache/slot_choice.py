"""Which free slots should be taken next?"""

from collections.abc import Callable, Iterable
from typing import Any


def choose_slots(
    free: Iterable[int],
    num_wanted: int,
    rank: Callable[[int], Any],
    *,
    is_compact: bool,
    num_slots: int,
) -> list[int]:
    """Choose free slots, those of the lowest rank first.

    With ``is_compact`` what counts above all is that taken slots are neighbours. In a split cache
    llama.cpp computes only neighbouring sequences in one pass, and a pass more in each step costs
    more than bringing a prefix to where it is needed.
    """
    left = set(free)
    taken = set(range(num_slots)) - left
    chosen: list[int] = []
    ranks = {slot: rank(slot) for slot in left}
    for _ in range(min(num_wanted, len(left))):
        slot = min(left, key=lambda slot: (is_compact and _num_more_runs(slot, taken), ranks[slot]))
        left.remove(slot)
        taken.add(slot)
        chosen.append(slot)
    return chosen


def _num_more_runs(slot: int, taken: set[int]) -> int:
    """Tell how many more runs of neighbours a slot makes: 1, 0, or -1 where it joins two."""
    return 1 - (slot - 1 in taken) - (slot + 1 in taken)
