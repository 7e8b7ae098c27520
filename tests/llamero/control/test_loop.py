"""The control loop goes on whatever a step does."""

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from inference.relay.connect import connect
from llamero.control.loop import ControlLoop
from tests.processes import wait_until

pytestmark = pytest.mark.django_db


def test_a_failing_step_keeps_no_other_from_running(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[str] = []

    def break_down(_: object) -> None:
        raise RuntimeError("broken step")

    def lose_broker(_: object) -> None:
        raise RedisConnectionError("gone")

    def work(_: object) -> None:
        taken.append("work")

    redis = connect("unix:///nowhere.sock")
    loop = ControlLoop(redis, (break_down, lose_broker, work))
    loop.run_once()
    assert taken == ["work"]
    assert "break_down failed" in caplog.text
    assert "lose_broker: the broker does not answer" in caplog.text
    assert loop.ready["steps"]() == "failed: break_down, lose_broker"
    assert loop.live["loop"]() == ""


def test_the_loop_runs_until_stopped() -> None:
    taken: list[int] = []
    loop = ControlLoop(connect("unix:///nowhere.sock"), (lambda _: taken.append(1),))
    loop.start()
    wait_until(lambda: taken, what="a first round")
    loop.stop()
    num_rounds = len(taken)
    loop.stop()
    assert len(taken) == num_rounds
