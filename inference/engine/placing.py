"""Which waiting sequence takes which free slot?"""

from collections.abc import Sequence as SequenceOf

from inference.cache.prefix_cache import PrefixCache
from inference.cache.reuse_rules import MIN_GAIN
from inference.cache.slot_choice import choose_slots
from inference.engine.lending import scope_of
from inference.engine.sequence import Sequence

Rank = tuple[int, int, int, int]


def place(
    cache: PrefixCache, arrived: SequenceOf[Sequence], num_slots: int
) -> list[tuple[Sequence, int]]:
    """Give each of the sequences a free slot, as far as there are any.

    Who finds its beginning in a chosen slot gets that one. The others are seated by length:
    llama.cpp computes neighbours of equal length in one pass, and what is left of the longer ones
    in the next.
    """
    in_place = [_in_place(cache, sequence) for sequence in arrived]
    best: dict[int, int] = {}
    for lengths in in_place:
        for slot, length in lengths.items():
            best[slot] = max(length, best.get(slot, 0))
    slots = choose_slots(
        cache.free_slots(),
        len(arrived),
        lambda slot: _rank(cache, slot, best.get(slot, 0)),
        is_compact=cache.is_split,
        num_slots=num_slots,
    )
    wishes = [
        (length, -index, slot)
        for index, lengths in enumerate(in_place)
        for slot, length in lengths.items()
        if slot in slots
    ]
    seats: dict[int, int] = {}
    for _, index, slot in sorted(wishes, reverse=True):
        if -index not in seats and slot not in seats.values():
            seats[-index] = slot
    left = sorted(set(slots) - set(seats.values()))
    others = [index for index in range(len(slots)) if index not in seats]
    others.sort(key=lambda index: arrived[index].num_tokens)
    seats.update(zip(others, left, strict=True))
    return [(arrived[index], seats[index]) for index in sorted(seats)]


def _in_place(cache: PrefixCache, sequence: Sequence) -> dict[int, int]:
    """Tell which free slots hold how much of a sequence."""
    scope = scope_of(sequence.job)
    if scope is None or sequence.wants_prompt_rows:
        return {}
    return cache.matches_in_place(scope, sequence.tokens)


def _rank(cache: PrefixCache, slot: int, num_in_place: int) -> Rank:
    """Order free slots: what is of use in place and costs nobody else anything, then what holds
    nothing that is not elsewhere, then what was of no use for the longest time."""
    if cache.num_lost(slot, num_in_place) >= MIN_GAIN:
        return (2, cache.last_used(slot), 0, slot)
    if num_in_place:
        return (0, -num_in_place, 0, slot)
    num_held = cache.num_computed(slot)
    return (1, int(num_held > 0), cache.last_used(slot) if num_held else 0, slot)
