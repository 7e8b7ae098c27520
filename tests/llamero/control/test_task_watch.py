"""A control worker that no longer hears its tasks is noticed, a busy one is not blamed."""

from inference.relay.connect import connect
from llamero.control.task_watch import TaskWatch
from tests.inference.relay.broker import Broker


def test_tasks_that_wait_beside_free_threads_are_noticed(broker: Broker) -> None:
    now = 0.0
    watch = TaskWatch("tasks", num_threads=1, clock=lambda: now)

    def judge(later: float) -> str:
        nonlocal now
        now += later
        watch.look(redis)
        return watch.judge()

    with connect(broker.url) as redis:
        assert judge(100) == ""
        redis.lpush("tasks", "a task")
        assert judge(50) == ""
        assert judge(50) == "tasks wait, and none was taken for 100 s"
        watch._on_begin()
        assert judge(1) == ""
        assert judge(100) == ""
        watch._on_end()
        assert judge(50) == ""
        assert judge(50) != ""
        redis.delete("tasks")
        assert judge(0) == ""
