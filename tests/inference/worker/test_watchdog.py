"""What a replica makes of an engine without a step, and of tickets that nobody hears."""

import pytest

from inference.worker.watchdog import EngineWatch, Standstill, TicketWatch


@pytest.mark.parametrize(
    ("cpu_share", "stalled_after", "wedged_after"),
    [(0.02, 4.0, 30.0), (0.1, 60.0, 300.0), (1.5, 60.0, 300.0)],
)
def test_no_step_is_a_stall_and_then_the_end(
    cpu_share: float, stalled_after: float, wedged_after: float
) -> None:
    now = 100.0
    watch = EngineWatch(lambda: 7, lambda: True, lambda: now * cpu_share)
    judged = []
    for now in (100.0, 100.0 + stalled_after, 100.1 + stalled_after, 100.1 + wedged_after):
        standstill = watch.check(now)
        judged.append((standstill.is_stalled, standstill.is_wedged))
    assert judged == [(False, False), (False, False), (True, False), (True, True)]


def test_an_engine_without_jobs_stands_still_rightly() -> None:
    watch = EngineWatch(lambda: 7, lambda: False)
    assert watch.check(0.0) == watch.check(1000.0) == Standstill()


def test_a_step_begins_the_count_again() -> None:
    counters = iter((1, 2, 2))
    watch = EngineWatch(lambda: next(counters), lambda: True, lambda: 0.0)
    watch.check(0.0)
    watch.check(40.0)
    assert watch.check(43.0).seconds == 3.0


def test_tickets_that_lie_while_slots_are_free_are_not_heard() -> None:
    num_used, is_free, num_queued = 0, True, 1
    watch = TicketWatch(lambda: num_used, lambda: is_free, lambda: num_queued)
    assert not watch.is_deaf(0.0)
    assert not watch.is_deaf(20.0)
    assert watch.is_deaf(20.1)
    num_used = 1
    assert not watch.is_deaf(21.0)
    is_free = False
    assert not watch.is_deaf(60.0)
    is_free, num_queued = True, 0
    assert not watch.is_deaf(100.0)
