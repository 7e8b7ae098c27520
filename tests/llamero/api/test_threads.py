"""What may take long to validate holds up nothing that does not."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import RequestFactory

from llamero.accounts.selectors import recent_callers
from llamero.api import threads
from llamero.api.model_choice import recent_lists, recent_models
from llamero.api.threads import MAX_QUICK_BYTES, choose_threads, slow_threads
from llamero.limits.selectors import recent_limits

CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("changes", "is_slow"),
    [
        ({}, False),
        ({"temperature": 0.5, "stop": ["."]}, False),
        ({"tools": []}, True),
        ({"grammar": 'root ::= "a"'}, True),
        ({"response_format": {"type": "json_object"}}, True),
        ({"text": {"format": {"type": "json_schema", "schema": {}}}}, True),
        ({"user": "x" * MAX_QUICK_BYTES}, True),
    ],
)
def test_forms_tools_and_large_bodies_are_validated_apart(
    changes: dict[str, Any], is_slow: bool
) -> None:
    body = json.dumps(CHAT | changes)
    request = RequestFactory().post("/v1/chat/completions", body, "application/json")
    assert choose_threads(request) is (slow_threads if is_slow else None)


def test_a_body_that_is_no_json_is_not_read() -> None:
    request = RequestFactory().post("/v1/files", {"purpose": "batch"})
    assert choose_threads(request) is None
    assert not hasattr(request, "_body")


async def test_a_thread_gives_its_database_connections_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = SimpleNamespace(in_atomic_block=False, num_closed=0)

    def close() -> None:
        connection.num_closed += 1

    connection.close = close
    opened = SimpleNamespace(all=lambda initialized_only: [connection])
    monkeypatch.setattr(threads, "connections", opened)
    assert await threads.run_in_thread(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        await threads.run_in_thread(lambda: 1 // 0)
    assert connection.num_closed == 2


def test_what_an_admin_changes_counts_everywhere_within_a_second() -> None:
    for cache in (recent_callers, recent_limits, recent_lists, recent_models):
        assert cache._lifetime <= 1.0
