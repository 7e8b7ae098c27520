"""What was just refused is refused again early, whatever the next body holds."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from inference.protocol.errors import EngineError, ErrorCode
from llamero.api import async_view
from llamero.api.early_refusals import EarlyRefusals
from llamero.api.paths import Dialect
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import FakeDispatcher

MESSAGES = [{"role": "user", "content": "Hi"}]
FULL = EngineError(ErrorCode.KEY_QUEUE_FULL, "Too many wait.", retry_after=3.0)
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "smol", "messages": MESSAGES},
    "/v1/messages": {"model": "smol", "messages": MESSAGES, "max_tokens": 4},
    "/completion": {"prompt": "Hi"},
}


@pytest.fixture(autouse=True)
def full(dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue that is full, at a moment that does not pass."""
    monkeypatch.setattr(async_view, "early_refusals", EarlyRefusals(lambda: 0.0))
    dispatcher.submit_error, dispatcher.num_accepted = FULL, 0


@pytest.mark.parametrize("path", BODIES)
async def test_a_refusal_is_told_again_with_the_id_of_the_next_request(
    dispatcher: FakeDispatcher, path: str
) -> None:
    first = await post(path, BODIES[path])
    num_asked = len(dispatcher.questions)
    again = await post(path, BODIES[path])
    assert len(dispatcher.questions) == num_asked
    for answer in (first, again):
        assert (answer.status, answer.headers["retry-after"]) == (429, "3")
        if path == "/v1/messages":
            assert answer.json()["request_id"] == answer.headers["request-id"]
    assert first.json()["error"] == again.json()["error"]
    assert first.headers["x-request-id"] != again.headers["x-request-id"]


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"smol","x":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b'{"model":' + b'{"a":' * 10_000,
        b'{"model":"\xff"}',
        b"[" * 100_000,
        b"",
    ],
    ids=["deep", "deep model", "no text", "brackets", "empty"],
)
async def test_a_body_that_cannot_be_read_is_told_so_meanwhile(path: str, raw: bytes) -> None:
    await post(path, BODIES[path])
    assert (await post(path, raw)).status == 400


@pytest.mark.parametrize("key", ["", "Bearer llm_x"])
def test_what_shows_no_key_is_told_nobody_else_s_refusal(key: str) -> None:
    """As requests of pages and batches do."""
    refusals = EarlyRefusals()
    headers = {"Authorization": key} if key else {}
    request = RequestFactory().post(
        "/v1/embeddings", {"model": "mini"}, content_type="application/json", headers=headers
    )
    refusals.note(request, FULL, HttpResponse(status=429), Dialect.OPENAI)
    assert (refusals.repeat(request) is not None) == bool(key)


def test_a_refusal_of_long_ago_keeps_nobody_out() -> None:
    """Who was refused and waits as they were told may come with all that fits by then."""
    clock = SimpleNamespace(now=0.0)
    refusals = EarlyRefusals(lambda: clock.now)
    request = RequestFactory().post(
        "/v1/embeddings",
        {"model": "mini"},
        content_type="application/json",
        headers={"Authorization": "Bearer llm_x"},
    )

    def refuse() -> None:
        refusals.note(request, FULL, HttpResponse(status=429), Dialect.OPENAI)

    def is_let_through(now: float) -> bool:
        clock.now = now
        return refusals.repeat(request) is None

    refuse()
    let_through = [is_let_through(now) for now in (0.1, 0.3, 0.31, 0.6, 0.61)]
    assert let_through == [False, True, False, True, False]
    refuse()
    assert not is_let_through(0.7)
    assert all(is_let_through(1.7) for _ in range(5))
