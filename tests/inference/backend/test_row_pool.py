"""Rows of an input pool to one vector, in whatever parts they come."""

import random

import numpy as np
import pytest

from inference.backend.row_pool import Pooling, RowPool

ROWS = np.random.default_rng(1).standard_normal((50, 4)).astype(np.float32)
EXPECTED = {
    "mean": ROWS.mean(axis=0, keepdims=True),
    "cls": ROWS[:1],
    "last": ROWS[-1:],
    "none": ROWS,
}


@pytest.mark.parametrize("pooling", EXPECTED)
@pytest.mark.parametrize("seed", range(5))
def test_parts_give_what_the_whole_gives(pooling: Pooling, seed: int) -> None:
    pool = RowPool(pooling, 4)
    cuts = sorted(random.Random(seed).sample(range(1, 50), 3))
    pieces = np.split(ROWS, cuts)
    given = []
    for at, piece in enumerate(pieces):
        pool.add(9, ROWS[:3], is_last=False)
        given.append(pool.add(1, piece, is_last=at == len(pieces) - 1))
    assert np.concatenate(given) == pytest.approx(EXPECTED[pooling], abs=1e-6)


@pytest.mark.parametrize("pooling", EXPECTED)
def test_a_dropped_input_leaves_nothing_to_the_next_of_its_id(pooling: Pooling) -> None:
    pool = RowPool(pooling, 4)
    pool.add(1, ROWS[::-1], is_last=False)
    pool.drop(1)
    assert pool.add(1, ROWS, is_last=True) == pytest.approx(EXPECTED[pooling], abs=1e-6)
