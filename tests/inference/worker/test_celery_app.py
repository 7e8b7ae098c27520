"""The replica's Celery application is safe and small."""

import pytest

from inference.protocol.names import TICKET_TASK, broker_url
from inference.worker.celery_app import build_app


@pytest.mark.parametrize(
    ("redis_url", "expected"),
    [
        ("unix:///run/v.sock", "redis+socket:///run/v.sock?virtual_host=0"),
        ("unix:///run/v.sock?db=3", "redis+socket:///run/v.sock?virtual_host=3"),
        ("unix://u:p@/run/v.sock", "redis+socket://u:p@/run/v.sock?virtual_host=0"),
        ("redis://h:1/2", "redis://h:1/2"),
        ("rediss://h:1/2", "rediss://h:1/2"),
    ],
)
def test_broker_urls(redis_url: str, expected: str) -> None:
    assert broker_url(redis_url) == expected


def test_only_json_tickets_of_one_queue_are_accepted() -> None:
    app = build_app("redis://localhost", "chat-1", lambda: None)
    assert app.conf.accept_content == ["json"]
    assert app.conf.worker_enable_remote_control is False
    assert [(queue.name, queue.no_ack) for queue in app.conf.task_queues] == [("gen.chat-1", True)]
    assert TICKET_TASK in app.tasks
