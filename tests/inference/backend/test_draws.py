"""Random numbers by position, and what they choose."""

import numpy as np
import pytest

from inference.backend.draws import AGAIN, CHANCE, TOKEN, Draws, pick


def test_a_number_depends_on_seed_position_and_purpose_alone() -> None:
    numbers = {
        (seed, position, purpose): Draws(seed).at(position, purpose)
        for seed in (0, 1, 2**32 - 2)
        for position in range(50)
        for purpose in (TOKEN, AGAIN, CHANCE)
    }
    assert len(set(numbers.values())) == len(numbers)
    draws = Draws(1)
    assert [draws.at(7), draws.at(3), draws.at(7)] == [numbers[1, at, TOKEN] for at in (7, 3, 7)]
    assert Draws(None).at(0) != Draws(None).at(0)


def test_numbers_are_spread_evenly_over_positions_and_over_seeds() -> None:
    by_position = [Draws(5).at(position) for position in range(20_000)]
    by_seed = [Draws(seed).at(0) for seed in range(20_000)]
    for numbers in (by_position, by_seed):
        counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
        # Chi-squared with 19 degrees of freedom is below 45 in 99.9 % of cases.
        assert ((counts - 1000) ** 2 / 1000).sum() < 45
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.02


@pytest.mark.parametrize("num_weights", [3, 900, 5000])
def test_a_choice_is_where_the_draw_falls(num_weights: int) -> None:
    random = np.random.default_rng(num_weights)
    weights = random.random(num_weights).astype(np.float32)
    weights[random.random(num_weights) < 0.5] = 0
    weights[-1] = 0
    ends = np.cumsum(weights, dtype=np.float64)
    for draw in (0.0, 0.25, 0.5, 0.999, 1 - 2**-48, *random.random(200)):
        at = pick(weights, float(draw))
        assert weights[at] > 0
        assert abs(ends[at] - draw * ends[-1]) <= weights[at] + 1e-3


def test_nothing_is_chosen_where_nothing_weighs() -> None:
    for num_weights in (0, 1, 10, 3000):
        assert pick(np.zeros(num_weights, np.float32), 0.5) == -1
    assert pick(np.full(3, np.nan, np.float32), 0.5) == -1


def test_choices_follow_the_weights() -> None:
    weights = np.zeros(2000, np.float32)
    weights[[3, 700, 1999]] = 1, 2, 5
    draws = Draws(8)
    chosen = [pick(weights, draws.at(position)) for position in range(8000)]
    counts = {token: chosen.count(token) for token in (3, 700, 1999)}
    assert counts[3] == pytest.approx(1000, rel=0.1)
    assert counts[700] == pytest.approx(2000, rel=0.1)
    assert counts[1999] == pytest.approx(5000, rel=0.1)
