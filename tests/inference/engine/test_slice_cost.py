"""Slices get shorter where each of their tokens takes longer, and never too short to pay."""

import random

import pytest

from inference.engine.plan import StepPlan
from inference.engine.scheduler import Scheduler
from inference.engine.slice_cost import SHORTEST_SLICE, SliceCost
from inference.protocol.replicas import RuntimeProfile
from tests.inference.engine.test_scheduler import make_sequence, plan_sizes


def learned(cell_share: float, num_steps: int = 40, *, noise: float = 0.0) -> SliceCost:
    """Teach what a token costs by steps of a long prompt beside four sequences."""
    cost, rng = SliceCost(), random.Random(1)
    cost.observe(StepPlan(num_decode=4), 0.05)
    for step in range(num_steps):
        tokens = rng.choice([128, 128, 90, 20])
        cells = tokens * (100 * step + tokens // 2)
        seconds = 0.05 + 0.003 * (tokens + cell_share * cells) * (1 + noise * rng.uniform(-1, 1))
        plan = StepPlan(num_decode=4, num_prefill_tokens=tokens, num_prefill_cells=cells)
        cost.observe(plan, seconds)
    return cost


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_slice_is_halved_where_its_tokens_take_more_than_twice_the_time(noise: float) -> None:
    cost = learned(1 / 1000, noise=noise)
    assert [cost.shorten(512, start) for start in (0, 500, 2000, 5000)] == [512, 512, 256, 128]
    assert cost.shorten(128, 100_000) == SHORTEST_SLICE
    assert cost.shorten(100, 100_000) == 100


def test_nothing_is_shortened_where_depth_costs_nothing_or_is_not_known() -> None:
    assert learned(0.0).shorten(512, 100_000) == 512
    assert learned(1 / 1000, num_steps=4).shorten(512, 100_000) == 512
    assert SliceCost().shorten(512, 100_000) == 512


def test_a_deep_prompt_beside_others_gets_shorter_slices() -> None:
    profile = RuntimeProfile(num_slots=4, step_token_budget=1000, prefill_chunk=256)
    scheduler = Scheduler(profile, 0, learned(1 / 1000))
    deep = make_sequence(0, 4000)
    deep.num_computed = 3500
    assert plan_sizes(scheduler, [deep, make_sequence(1, 5, decoding=True)]) == {0: 64, 1: 1}
    assert plan_sizes(scheduler, [deep]) == {0: 500}
