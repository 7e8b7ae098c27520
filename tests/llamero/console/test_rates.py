"""Counters that are looked at again and again become numbers per second."""

from inference.protocol.replicas import EngineStats, ReplicaState, ReplicaStatus
from llamero.console.rates import WINDOW_SECONDS, Rates, Speedometer


def status(replica: str = "a.0", *, tokens: int, done: int = 0) -> ReplicaStatus:
    """Make a heartbeat."""
    stats = EngineStats(num_decoded_tokens=tokens, num_jobs_done=done, num_prompt_tokens=2 * tokens)
    return ReplicaStatus(
        replica=replica, deployment=replica[0], node="n", state=ReplicaState.READY, stats=stats
    )


def test_nothing_is_known_before_the_second_look() -> None:
    meter = Speedometer()
    assert meter.rates() is None
    meter.note(1.0, [status(tokens=5)])
    assert meter.rates() is None


def test_rates_are_those_of_the_last_seconds() -> None:
    meter = Speedometer()
    for second in range(20):
        meter.note(float(second), [status(tokens=10 * second, done=second)])

    assert meter.rates() == meter.rates("a") == Rates(10.0, 20.0, 1.0)
    meter.note(19.0 + WINDOW_SECONDS, [status(tokens=190, done=19)])
    assert meter.rates() == Rates()


def test_a_replica_that_came_or_began_anew_does_not_leap() -> None:
    meter = Speedometer()
    meter.note(0.0, [status(tokens=1000)])
    meter.note(1.0, [status(tokens=5), status("b.0", tokens=9000)])

    rates, other = meter.rates(), meter.rates("b")
    assert rates is not None and rates.tokens == 5.0
    assert other is not None and other.tokens == 0.0
