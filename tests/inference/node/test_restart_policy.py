"""Pauses between tries to start a replica."""

from inference.node.restart_policy import RestartPolicy


def test_pauses_grow_from_one_second() -> None:
    policy = RestartPolicy()
    assert policy.can_start(0.0)
    pauses = []
    for now in (0.0, 100.0, 200.0):
        policy.record_failure(now)
        pauses.append(policy.seconds_left(now))
        assert not policy.can_start(now)
    assert pauses == [1.0, 2.0, 4.0]
    assert policy.can_start(204.0)


def test_gives_up_after_five_failures_in_five_minutes() -> None:
    policy = RestartPolicy()
    for now in (0.0, 10.0, 20.0, 30.0, 40.0):
        assert not policy.has_given_up
        policy.record_failure(now)
    assert policy.has_given_up
    assert not policy.can_start(1e9)


def test_old_failures_do_not_count() -> None:
    policy = RestartPolicy()
    for now in (0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0):
        policy.record_failure(now)
    assert not policy.has_given_up
    policy.record_failure(2000.0)
    assert policy.seconds_left(2000.0) == 1.0
