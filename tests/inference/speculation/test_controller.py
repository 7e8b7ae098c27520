"""When guesses pay, and when they are left."""

import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from inference.speculation.controller import Chance, Controller
from inference.speculation.step_cost import Load, StepCost, measure_load

Cost = Callable[[Load], float]


def heavy_passes(load: Load) -> float:
    """A step that is mostly reading weights, as on a GPU or with a large model."""
    return 20e-3 * load.num_passes + 0.5e-3 * load.num_tokens


def heavy_tokens(load: Load) -> float:
    """A step that is mostly arithmetic, as on a few cores."""
    return 2e-3 * load.num_passes + 4e-3 * load.num_tokens


def trained(cost: Cost, *, num_slots: int = 1, is_unified: bool = False) -> Controller:
    controller = Controller(is_unified=is_unified, max_drafts_per_step=64)
    slots = list(range(num_slots))
    for drafts in (0, 1, 2, 4, 8) * 3:
        counts = [1 + drafts] * num_slots
        seconds = cost(measure_load(slots, counts, is_unified=is_unified))
        controller.observe([(slots, counts)], seconds)
    return controller


def chances(rates: Sequence[float], max_drafts: int = 8, **fields: float) -> list[Chance]:
    return [
        Chance(slot, max_drafts, rate, **fields)  # type: ignore[arg-type]
        for slot, rate in enumerate(rates)
    ]


def test_good_guesses_are_computed_where_tokens_are_cheap() -> None:
    assert trained(heavy_passes).choose(chances([0.9])) == [8]


def test_bad_guesses_are_left_where_tokens_are_dear() -> None:
    assert trained(heavy_tokens).choose(chances([0.3])) == [0]


def test_fewer_guesses_are_computed_the_worse_they_are() -> None:
    controller = trained(heavy_passes)
    counts = [controller.choose(chances([rate]))[0] for rate in (0.95, 0.7, 0.4, 0.1)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_nothing_is_guessed_before_a_step_was_timed() -> None:
    controller = Controller(is_unified=False, max_drafts_per_step=64)
    assert controller.choose(chances([0.9])) == [0]


def test_the_first_guesses_are_tried_and_tell() -> None:
    controller = Controller(is_unified=False, max_drafts_per_step=64)
    for _ in range(5):
        controller.observe([([0], [1])], heavy_tokens(Load(1, 1)))
    assert controller.choose(chances([0.6])) == [3]
    controller.observe([([0], [9])], heavy_tokens(Load(1, 9)))
    assert controller.choose(chances([0.3])) == [0]


def test_guessing_that_takes_long_itself_is_left() -> None:
    controller = trained(heavy_passes)
    assert controller.choose(chances([0.8]), 1e-3) != [0]
    assert controller.choose(chances([0.8]), 60e-3) == [0]


def test_no_sequence_pays_too_much_for_the_guesses_of_others() -> None:
    """Seven sequences without guesses would wait for the long pass of the eighth."""
    controller = trained(heavy_tokens, num_slots=8)
    assert controller.choose(chances([0.95] + [0.05] * 7)) == [0] * 8


def test_equal_slices_are_chosen_where_each_other_shape_is_a_pass_more() -> None:
    counts = trained(heavy_passes, num_slots=4).choose(chances([0.95, 0.6, 0.9, 0.7]))
    assert len(set(counts)) == 1
    assert counts[0] > 0


def test_one_pass_takes_any_shape_of_a_unified_cache() -> None:
    controller = trained(heavy_passes, num_slots=4, is_unified=True)
    counts = controller.choose(chances([0.95, 0.3, 0.9, 0.5]))
    assert counts[0] > counts[3] > 0


def test_the_rows_of_a_step_bound_its_guesses() -> None:
    controller = trained(heavy_passes, num_slots=16)
    counts = controller.choose(chances([0.95] * 16))
    assert 0 < sum(counts) <= 64


def test_it_does_not_flap_where_guesses_hardly_pay() -> None:
    """Noise of a few per cent in the estimates must not turn guessing on and off each step."""
    rng = random.Random(3)
    controller = trained(heavy_passes)
    states = []
    for _ in range(200):
        rate = 0.45 + rng.uniform(-0.03, 0.03)
        states.append(controller.choose(chances([rate]))[0] > 0)
    changes = sum(a != b for a, b in pairwise(states))
    assert changes <= 2


def test_a_request_may_bound_its_guesses() -> None:
    controller = trained(heavy_passes)
    assert controller.choose(chances([0.9], max_drafts=3)) == [3]
    assert controller.choose(chances([0.9], min_likely=0.7)) == [3]
    assert controller.choose(chances([0.5], min_drafts=7)) == [0]


@pytest.mark.parametrize(
    ("slots", "counts", "passes"),
    [
        ([0], [9], 1),
        ([0, 1, 2], [1, 1, 1], 1),
        ([0, 1, 2], [5, 5, 5], 1),
        ([0, 2], [1, 1], 2),
        ([0, 1], [5, 1], 2),
        ([0, 1, 2], [5, 1, 5], 3),
        ([0, 1, 2], [3, 2, 1], 3),
        ([3, 4, 6, 7], [2, 2, 2, 2], 2),
    ],
)
def test_passes_of_a_split_cache_are_foreseen(
    slots: list[int], counts: list[int], passes: int
) -> None:
    assert measure_load(slots, counts, is_unified=False) == Load(passes, sum(counts))
    assert measure_load(slots, counts, is_unified=True) == Load(1, sum(counts))


@pytest.mark.parametrize("seed", range(10))
def test_costs_are_learned_from_noisy_steps(seed: int) -> None:
    rng = random.Random(seed)
    cost = StepCost()
    for _ in range(300):
        load = Load(rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 3, 5, 9)))
        cost.observe(load, heavy_tokens(load) * rng.uniform(0.8, 1.25))
    assert cost.pass_seconds == pytest.approx(2e-3, abs=1.5e-3)
    assert cost.token_seconds == pytest.approx(4e-3, rel=0.15)


def test_a_stall_of_the_machine_is_not_taken_at_its_word() -> None:
    controller = trained(heavy_passes)
    before = controller.cost.predict(Load(1, 1))
    controller.observe([([0], [1])], 30.0)
    assert controller.cost.predict(Load(1, 1)) < 2 * before


def test_costs_of_a_step_that_took_no_time_can_still_be_learned() -> None:
    cost = StepCost()
    cost.observe(Load(1, 1), 0.0)
    assert cost.predict(Load(1, 1)) == 0
    cost.observe(Load(1, 1), 1e-3)
    assert cost.predict(Load(1, 1)) > 0


def test_a_load_that_was_seen_is_believed_rather_than_a_line() -> None:
    """Two tokens cost twice as much as one here, but four hardly more than two."""
    cost = StepCost()
    for num_tokens, seconds in ((1, 10e-3), (2, 20e-3), (4, 21e-3)):
        cost.observe(Load(1, num_tokens), seconds)
    assert cost.predict(Load(1, 4)) == 21e-3
    assert 21e-3 < cost.predict(Load(1, 8)) < 60e-3


def test_loads_of_long_ago_are_forgotten() -> None:
    cost = StepCost()
    cost.observe(Load(1, 8), 1.0)
    for _ in range(600):
        cost.observe(Load(1, 1), 1e-3)
    assert cost.predict(Load(1, 8)) < 1.0
    assert cost.token_seconds == 0


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("num_slots", [1, 8])
def test_no_speed_is_lost_where_guesses_do_not_pay(num_slots: int, rate: float) -> None:
    """Steps of a noisy machine whose tokens are dear: what is gained is at least what is lost."""
    rng = random.Random(rate)
    controller = Controller(is_unified=False, max_drafts_per_step=128)
    slots = list(range(num_slots))
    plain = heavy_tokens(Load(1, num_slots))
    num_tokens = seconds = 0.0
    for _ in range(400):
        chosen = controller.choose(chances([rate] * num_slots, max_drafts=16))
        took = heavy_tokens(measure_load(slots, [1 + one for one in chosen], is_unified=False))
        counts = [1 + one for one in chosen]
        controller.observe([(slots, counts)], took * rng.uniform(1, 1.3))
        seconds += took
        num_tokens += sum((1 - rate ** (1 + one)) / (1 - rate) for one in chosen)
    assert num_tokens / seconds > 0.95 * num_slots / plain
