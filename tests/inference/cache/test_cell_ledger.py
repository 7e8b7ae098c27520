"""Cells are counted once, whoever shares them, and freed with their last owner."""

import random

import pytest

from inference.cache.cell_ledger import CellLedger


def test_a_copy_shares_cells_only_in_a_unified_cache() -> None:
    for is_shared, num_used in ((True, 10), (False, 17)):
        ledger = CellLedger(2, 100, is_shared=is_shared)
        ledger.extend(0, 10)
        ledger.copy(0, 1, 7)
        assert (ledger.length(1), ledger.num_used) == (7, num_used)
        ledger.check_integrity()


def test_shared_cells_outlive_their_first_owner() -> None:
    ledger = CellLedger(2, 100, is_shared=True)
    ledger.extend(0, 10)
    ledger.copy(0, 1, 7)
    ledger.extend(1, 5)
    assert ledger.num_held_by({0}) == 3
    assert ledger.num_held_by({0, 1}) == 15
    ledger.cut(0, 0)
    assert ledger.num_used == 12
    ledger.check_integrity()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_shared", [True, False])
def test_random_life_agrees_with_lists_of_cells(seed: int, is_shared: bool) -> None:
    draw = random.Random(seed)
    ledger = CellLedger(4, 10_000, is_shared=is_shared)
    naive: list[list[int]] = [[] for _ in range(4)]
    next_cell = 0

    def fresh(count: int) -> list[int]:
        nonlocal next_cell
        next_cell += count
        return list(range(next_cell - count, next_cell))

    for _ in range(500):
        slot = draw.randrange(4)
        cells = naive[slot]
        match draw.choice(["extend", "cut", "drop", "copy"]):
            case "extend":
                count = draw.randint(0, 9)
                ledger.extend(slot, count)
                cells += fresh(count)
            case "cut":
                length = draw.randint(0, len(cells))
                ledger.cut(slot, length)
                del cells[length:]
            case "drop":
                start = draw.randint(0, len(cells))
                count = draw.randint(0, len(cells) - start)
                ledger.drop(slot, start, count)
                del cells[start : start + count]
            case "copy":
                source = draw.choice([other for other in range(4) if other != slot])
                count = draw.randint(0, len(naive[source]))
                ledger.cut(slot, 0)
                ledger.copy(source, slot, count)
                naive[slot] = naive[source][:count] if is_shared else fresh(count)
        ledger.check_integrity()
        assert [ledger.length(at) for at in range(4)] == list(map(len, naive))
        assert ledger.num_used == len({cell for held in naive for cell in held})
        some = set(draw.sample(range(4), 2))
        others = {cell for at, held in enumerate(naive) if at not in some for cell in held}
        held_by_some = {cell for at in some for cell in naive[at]}
        assert ledger.num_held_by(some) == len(held_by_some - others)
