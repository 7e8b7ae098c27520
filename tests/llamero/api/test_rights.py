"""What keys are for, where they count, and what many wrong ones are told."""

from dataclasses import replace
from ipaddress import ip_network

import pytest
from django.contrib.auth.models import User

from llamero.accounts import authentication, wrong_keys
from llamero.accounts.callers import Caller
from llamero.accounts.scopes import Scope
from llamero.api.async_view import AsyncAPIView
from tests.llamero.api.asgi_client import KEY, get, start
from tests.llamero.api.fakes import FakeDispatcher

CALLER = Caller(User(pk=1, username="ada"), 1, "key:1", scopes=frozenset(Scope))
ROUTES = [
    (Scope.INFERENCE, "POST", "/v1/chat/completions"),
    (Scope.INFERENCE, "POST", "/v1/completions"),
    (Scope.INFERENCE, "POST", "/v1/messages"),
    (Scope.INFERENCE, "POST", "/v1/messages/count_tokens"),
    (Scope.INFERENCE, "POST", "/completion"),
    (Scope.INFERENCE, "POST", "/m/smol/completion"),
    (Scope.INFERENCE, "POST", "/infill"),
    (Scope.INFERENCE, "POST", "/chat/completions"),
    (Scope.INFERENCE, "POST", "/tokenize"),
    (Scope.INFERENCE, "POST", "/apply-template"),
    (Scope.INFERENCE, "GET", "/v1/runs/run_0/events"),
    (Scope.INFERENCE, "GET", "/v1/stream?conv_id=a"),
    (Scope.EMBEDDINGS, "POST", "/v1/embeddings"),
    (Scope.EMBEDDINGS, "POST", "/embedding"),
    (Scope.EMBEDDINGS, "POST", "/v1/rerank"),
    (Scope.MODELS, "GET", "/v1/models"),
    (Scope.MODELS, "GET", "/v1/models/smol"),
    (Scope.MODELS, "GET", "/props?model=smol"),
    (Scope.MODELS, "GET", "/slots?model=smol"),
    (Scope.MODELS, "GET", "/metrics"),
    (Scope.MODELS, "GET", "/lora-adapters?model=smol"),
    (Scope.RESPONSES, "POST", "/v1/responses"),
    (Scope.RESPONSES, "POST", "/v1/responses/input_tokens"),
]


def let_in(monkeypatch: pytest.MonkeyPatch, caller: Caller) -> None:
    """Have the key be this caller's."""
    monkeypatch.setattr(authentication, "find_caller", {KEY: caller}.get)


@pytest.mark.parametrize(("scope", "method", "url"), ROUTES)
async def test_a_route_needs_its_scope_and_no_other(
    monkeypatch: pytest.MonkeyPatch, scope: Scope, method: str, url: str
) -> None:
    body = b"{" if method == "POST" else None
    let_in(monkeypatch, replace(CALLER, scopes=frozenset(Scope) - {scope}))
    refused = await start(method, url, body).finish()
    assert refused.status == 403
    assert f"it lacks the scope {scope.value}." in refused.json()["error"]["message"]
    let_in(monkeypatch, replace(CALLER, scopes=frozenset({scope})))
    assert (await start(method, url, body).finish()).status not in (401, 403)


async def test_a_lacking_scope_is_named_by_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    let_in(monkeypatch, replace(CALLER, scopes=frozenset()))
    answer = await get("/v1/models")
    assert (answer.status, answer.error["code"]) == (403, "insufficient_scope")
    assert answer.error["type"] == "permission_error"


def test_no_view_is_open_to_keys_for_nothing() -> None:
    assert AsyncAPIView.scope is Scope.INFERENCE


async def test_a_key_counts_where_it_may_be_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = await get("/v1/models", key=KEY + "x")
    let_in(monkeypatch, replace(CALLER, networks=(ip_network("192.0.2.0/24"),)))
    elsewhere = await get("/v1/models", headers={"x-forwarded-for": "192.0.2.7"})
    assert (elsewhere.status, elsewhere.body) == (401, unknown.body)
    assert "Key 1 was shown at 127.0.0.1" in caplog.text
    let_in(monkeypatch, replace(CALLER, networks=(ip_network("127.0.0.0/8"),)))
    assert (await get("/v1/models")).status == 200


@pytest.mark.parametrize("url", ["/v1/models", "/props"])
async def test_many_wrong_keys_are_told_to_wait_and_good_ones_are_served(
    monkeypatch: pytest.MonkeyPatch, dispatcher: FakeDispatcher, url: str
) -> None:
    monkeypatch.setattr(wrong_keys, "HOLD_SECONDS", 0.0)
    dispatcher.wrong_keys.number = 28
    wrong = [await get(url, key=f"llm_{number}") for number in range(4)]
    assert [one.status for one in wrong] == [401, 401, 429, 429]
    assert wrong[-1].headers["retry-after"] == "42"
    assert "llm_3" not in wrong[-1].body.decode()
    assert (await get("/v1/models")).status == 200
    assert (await get(url, key=None)).status == 401
    assert dispatcher.wrong_keys.number == 32


async def test_who_gives_no_key_is_not_counted(dispatcher: FakeDispatcher) -> None:
    for header in ("", "Basic eA==", "Bearer"):
        await get("/v1/models", key=None, headers={"authorization": header})
    assert dispatcher.wrong_keys.number == 0
