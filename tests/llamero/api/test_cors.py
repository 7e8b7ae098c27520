"""Pages elsewhere call the API only where the operator lists them; then they read everything."""

from typing import Any

import pytest

from inference.protocol.errors import ErrorCode
from llamero.api import async_view
from llamero.api.early_refusals import EarlyRefusals
from tests.llamero.api.asgi_client import get, post, start
from tests.llamero.api.fakes import FakeDispatcher, engine_error

ORIGIN = {"origin": "https://app.example"}
ALLOWED = "access-control-allow-origin"
CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}
PREFLIGHT = ORIGIN | {
    "access-control-request-method": "POST",
    "access-control-request-headers": "x-api-key, idempotency-key, anthropic-version",
}


@pytest.fixture
def listed(settings: Any) -> None:
    """A list with one origin."""
    settings.CORS_ALLOWED_ORIGINS = [ORIGIN["origin"]]


async def test_nobody_is_let_in_unless_listed() -> None:
    preflight = await start("OPTIONS", "/v1/models", key=None, headers=PREFLIGHT).finish()
    assert ALLOWED not in preflight.headers
    assert ALLOWED not in (await get("/v1/models", headers=ORIGIN)).headers


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    "url", ["/v1/chat/completions", "/v1/messages", "/completion", "/m/smol/props"]
)
async def test_a_listed_page_may_ask_before_it_has_a_key(url: str) -> None:
    answer = await start("OPTIONS", url, key=None, headers=PREFLIGHT).finish()
    assert answer.status in (200, 204)
    assert answer.headers[ALLOWED] == ORIGIN["origin"]
    assert "access-control-allow-credentials" not in answer.headers
    permitted = answer.headers["access-control-allow-headers"].split(", ")
    for name in ("authorization", "x-api-key", "idempotency-key", "anthropic-version"):
        assert name in permitted
    assert "DELETE" in answer.headers["access-control-allow-methods"]
    assert int(answer.headers["access-control-max-age"]) > 0


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("body", "key", "status"),
    [(CHAT, "", 401), (b"{", None, 400), (CHAT | {"stream": True}, None, 200)],
)
async def test_errors_and_streams_can_be_read(body: Any, key: str | None, status: int) -> None:
    chosen = {} if key is None else {"key": key}
    answer = await post("/v1/chat/completions", body, headers=ORIGIN, **chosen)  # type: ignore[arg-type]
    assert answer.status == status
    assert answer.headers[ALLOWED] == ORIGIN["origin"]
    exposed = answer.headers["access-control-expose-headers"]
    assert "x-request-id" in exposed
    assert "retry-after" in exposed
    assert "origin" in answer.headers["vary"].lower()


@pytest.mark.usefixtures("listed")
async def test_each_page_reads_its_own_refusal(
    dispatcher: FakeDispatcher, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_view, "early_refusals", EarlyRefusals(lambda: 0.0))
    settings.CORS_ALLOWED_ORIGINS.append("https://other.example")
    dispatcher.submit_error, dispatcher.num_accepted = engine_error(ErrorCode.KEY_QUEUE_FULL), 0
    for origin in (ORIGIN["origin"], "https://other.example", "https://evil.example"):
        answer = await post("/v1/chat/completions", CHAT, headers={"origin": origin})
        assert answer.status == 429
        expected = None if "evil" in origin else origin
        assert answer.headers.get(ALLOWED) == expected
    assert len(dispatcher.questions) == 1


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("GET", "/v1/nothing", 404),
        ("POST", "/v1/chat/completions/", 404),
        ("POST", "/v1/embeddings", 415),
    ],
)
async def test_a_page_reads_that_an_address_is_wrong(method: str, path: str, status: int) -> None:
    headers = ORIGIN | {"content-type": "text/plain"}
    answer = await start(method, path, CHAT, headers=headers).finish()
    assert (answer.status, answer.headers[ALLOWED]) == (status, ORIGIN["origin"])


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://app.example.evil",
        "http://app.example",
        "https://app.example:8443",
        "https://[",
    ],
)
async def test_what_only_looks_alike_is_not_listed(origin: str) -> None:
    answer = await get("/v1/models", headers={"origin": origin})
    assert ALLOWED not in answer.headers
