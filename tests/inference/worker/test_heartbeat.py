"""What a replica notices about itself between beats."""

import pytest

from inference.protocol.replicas import EngineStats
from inference.worker.heartbeat import StrayJobs, Watchdog, resident_bytes


@pytest.mark.parametrize(("cpu_share", "limit"), [(0.01, 30.0), (1.5, 300.0)])
def test_an_engine_without_a_step_ends_the_process(cpu_share: float, limit: float) -> None:
    stats = EngineStats(num_steps=7, num_running=1)
    ended: list[bool] = []
    now = 100.0
    watchdog = Watchdog(lambda: stats, lambda: ended.append(True), lambda: now * cpu_share)
    watchdog.check(now)
    now += limit
    watchdog.check(now)
    assert not ended
    now += 0.1
    watchdog.check(now)
    assert ended


def test_an_idle_engine_is_not_wedged() -> None:
    ended: list[bool] = []
    watchdog = Watchdog(lambda: EngineStats(num_steps=7), lambda: ended.append(True))
    watchdog.check(0.0)
    watchdog.check(1000.0)
    assert not ended


def test_a_step_resets_the_watchdog() -> None:
    ended: list[bool] = []
    counters = iter((1, 2, 2))
    watchdog = Watchdog(
        lambda: EngineStats(num_steps=next(counters), num_running=1), lambda: ended.append(True)
    )
    for now in (0.0, 40.0, 60.0):
        watchdog.check(now)
    assert not ended


def test_a_job_unknown_for_three_beats_is_stray() -> None:
    strays = StrayJobs()
    assert strays.find(["a", "b"], ["b"]) == ()
    assert strays.find(["a", "b"], ["a", "b"]) == ()
    assert strays.find(["a"], []) == ()
    assert strays.find(["a"], []) == ()
    assert strays.find(["a"], []) == ("a",)
    assert strays.find([], []) == ()


def test_memory_is_measured() -> None:
    assert resident_bytes() > 1 << 20
