"""How many replicas there are: by queue, by first tokens, by idleness."""

from dataclasses import replace

import pytest

from llamero.control.scaling import (
    PAUSE_AFTER_FEWER_SECONDS,
    PAUSE_AFTER_MORE_SECONDS,
    PRESSED_SECONDS,
    SLACK_SECONDS,
    Pace,
    rescale,
)
from llamero.control.world import Load
from tests.llamero.control.fakes import make_target

TARGET = make_target(min_replicas=1, max_replicas=4, target_ttft_seconds=5.0)
ONE = Load(num_placed=1, num_ready=1, num_slots=4)


def run(load: Load, seconds: int, pace: Pace | None = None, start: float = 0.0) -> Pace:
    """Let a load last, and give the pace at its end."""
    for tick in range(seconds + 1):
        pace = rescale(TARGET, load, pace, start + tick)
    assert pace is not None
    return pace


def test_a_long_queue_adds_a_replica_after_a_while() -> None:
    pressed = replace(ONE, num_running=4, num_waiting=3)
    assert run(pressed, int(PRESSED_SECONDS) - 1).num_wanted == 1
    assert run(pressed, int(PRESSED_SECONDS)).num_wanted == 2


def test_a_short_queue_adds_none() -> None:
    assert run(replace(ONE, num_running=4, num_waiting=2), 600).num_wanted == 1


def test_late_first_tokens_add_one_while_anything_waits() -> None:
    late = replace(ONE, num_running=4, num_waiting=1, ttft_seconds=6.0)
    assert run(late, 10).num_wanted == 2
    assert run(replace(late, num_waiting=0), 600).num_wanted == 1
    assert run(replace(late, ttft_seconds=4.0), 600).num_wanted == 1


def test_a_queue_for_several_adds_several_but_at_most_doubles() -> None:
    crowded = Load(num_placed=2, num_ready=2, num_slots=8, num_running=8, num_waiting=100)
    assert run(crowded, 5).num_wanted == 4


def test_nothing_is_added_before_the_last_one_serves_and_a_pause_is_over() -> None:
    pressed = replace(ONE, num_running=4, num_waiting=9)
    pace = run(pressed, 3)
    assert pace.num_wanted == 2
    pace = run(pressed, 300, pace, start=4)  # the second one never becomes ready
    assert pace.num_wanted == 2
    both = replace(pressed, num_placed=2, num_ready=2, num_slots=8)
    assert run(both, 1, replace(pace, changed_at=304), start=305).num_wanted == 2
    later = 304 + PAUSE_AFTER_MORE_SECONDS
    assert run(both, 1, replace(pace, changed_at=304), start=later).num_wanted == 4


def test_it_never_passes_its_bounds() -> None:
    assert run(replace(ONE, num_placed=9), 0).num_wanted == 4
    assert run(Load(), 0).num_wanted == 1
    crowded = Load(num_placed=4, num_ready=4, num_slots=16, num_running=16, num_waiting=99)
    assert run(crowded, 600).num_wanted == 4


def test_replicas_go_one_by_one_when_there_is_little_to_do() -> None:
    idle = Load(num_placed=3, num_ready=3, num_slots=12)
    assert run(idle, int(SLACK_SECONDS) - 1).num_wanted == 3
    pace = run(idle, int(SLACK_SECONDS))
    assert pace.num_wanted == 2
    two = replace(idle, num_placed=2, num_ready=2, num_slots=8)
    wait = int(max(SLACK_SECONDS, PAUSE_AFTER_FEWER_SECONDS))
    assert run(two, wait - 1, pace, start=61).num_wanted == 2
    assert run(two, wait, pace, start=61).num_wanted == 1


@pytest.mark.parametrize("num_running", range(9))
@pytest.mark.parametrize("num_waiting", range(6))
def test_no_load_both_adds_and_removes(num_running: int, num_waiting: int) -> None:
    """What one replica is too little for keeps two busy enough to stay."""
    load = Load(
        num_placed=1, num_ready=1, num_slots=4, num_running=num_running, num_waiting=num_waiting
    )
    if rescale(TARGET, load, None, 0).pressed_since is None:
        return
    num_jobs = num_running + num_waiting
    eased = Load(
        num_placed=2,
        num_ready=2,
        num_slots=8,
        num_running=min(8, num_jobs),
        num_waiting=max(0, num_jobs - 8),
    )
    assert num_running < 4 or rescale(TARGET, eased, Pace(2), 1).slack_since is None


def test_without_a_minimum_it_sleeps_until_it_is_used() -> None:
    target = make_target(min_replicas=0, idle_timeout_seconds=60)
    assert rescale(target, Load(), None, 1000).num_wanted == 0
    assert rescale(target, Load(used_at=990), None, 1000).num_wanted == 1
    assert rescale(target, Load(used_at=940), Pace(1), 1000).num_wanted == 0
    assert rescale(target, replace(ONE, used_at=1, num_running=1), Pace(1), 1000).num_wanted == 1
    assert rescale(target, Load(num_waiting=1), Pace(0), 1000).num_wanted == 1


def test_without_a_timeout_it_stays_until_its_memory_is_needed() -> None:
    target = make_target(min_replicas=0, idle_timeout_seconds=0)
    assert rescale(target, Load(used_at=1), Pace(1), 1e9).num_wanted == 1
    assert rescale(target, Load(used_at=0), Pace(1), 1e9).num_wanted == 0


def test_a_pinned_one_never_sleeps() -> None:
    target = make_target(min_replicas=1, idle_timeout_seconds=60)
    assert rescale(target, Load(), Pace(1), 1e9).num_wanted == 1
