"""Which key opens what."""

import time
from typing import Any

import pytest

from llamero.accounts.tickets import TICKET_SECONDS
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import KEY, get, post, start
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.fakes import FakeDispatcher, make_served

CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    "header",
    [
        f"Bearer {KEY}",
        f"bearer {KEY}",
        f"BEARER   {KEY}  ",
    ],
)
async def test_a_bearer_key_is_read_kindly(header: str) -> None:
    answer = await get("/v1/models", key=None, headers={"authorization": header})
    assert answer.status == 200


@pytest.mark.parametrize("name", ["x-api-key", "api-key"])
async def test_a_key_may_come_in_its_own_header(name: str) -> None:
    assert (await get("/v1/models", key=None, headers={name: KEY})).status == 200


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Basic eA==",
        KEY,
        f"Bearer{KEY}",
        "Bearer \xff\xfe",
        f"Bearer {KEY}x",
        f"Bearer {KEY},Bearer {KEY}",
        "Bearer x' OR pg_sleep(8)--",
        "Bearer " + "x" * 100_000,
    ],
)
async def test_anything_else_is_401(header: str) -> None:
    answer = await post("/v1/chat/completions", b"{", key=None, headers={"authorization": header})
    assert answer.status == 401
    assert answer.error["code"] == "invalid_api_key"
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_in_the_address_counts_for_nothing() -> None:
    assert (await get(f"/v1/models?api_key={KEY}", key=None)).status == 401


async def test_the_list_holds_only_what_the_key_may_use() -> None:
    everything = (await get("/v1/models")).json()
    assert [one["id"] for one in everything["data"]] == ["mini", "smol", "org/big:1b"]
    assert everything["object"] == "list"
    first = everything["data"][0]
    assert (first["object"], first["created"], first["owned_by"]) == (
        "model",
        1700000000,
        "llamero",
    )
    limited = (await get("/v1/models", key=LIMITED_KEY)).json()
    assert [one["id"] for one in limited["data"]] == ["mini"]


@pytest.mark.parametrize(
    ("states", "status"),
    [
        (["ready"], {"value": "loaded", "failed": False}),
        (["failed", "ready"], {"value": "loaded", "failed": False}),
        (["sleeping", "pending"], {"value": "loading", "failed": False}),
        (["sleeping", "stopped"], {"value": "sleeping", "failed": False}),
        (["stopped", "failed"], {"value": "unloaded", "failed": True}),
    ],
)
async def test_a_model_tells_whether_it_is_loaded(
    served: list[ServedModel], states: list[str], status: dict[str, Any]
) -> None:
    routes = tuple(make_served(f"smol-{state}", pk=7, state=state) for state in states)
    served.append(make_served("many", pk=7, routes=routes))
    assert (await get("/v1/models/many")).json()["status"] == status


async def test_a_ticket_for_a_socket_is_short_lived() -> None:
    answer = await start("POST", "/v1/socket-tickets").finish()
    assert answer.json()["ticket"]
    assert 0 < answer.json()["expires_at"] - time.time() <= TICKET_SECONDS
    assert (await start("POST", "/v1/socket-tickets", key=None).finish()).status == 401


async def test_one_model_is_found_by_its_id() -> None:
    assert (await get("/v1/models/org/big:1b")).json()["id"] == "org/big:1b"
    for key, name in ((KEY, "nothing"), (LIMITED_KEY, "smol")):
        answer = await get(f"/v1/models/{name}", key=key)
        assert (answer.status, answer.error["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("POST", "/v1/chat/completions", CHAT),
        ("POST", "/v1/chat/completions", CHAT | {"model": "tiny"}),
        ("POST", "/v1/chat/completions", CHAT | {"model": "SMOL"}),
        ("POST", "/v1/completions", {"model": "smol", "prompt": "x"}),
        ("POST", "/completion", {"model": "smol", "prompt": "x"}),
        ("POST", "/completion", {"prompt": "x"}),
        ("POST", "/m/smol/completion", {"prompt": "x", "model": "mini"}),
        ("POST", "/tokenize?model=smol", {"content": "x"}),
        ("POST", "/detokenize", {"tokens": [1], "model": "smol"}),
        ("POST", "/apply-template", CHAT),
        ("GET", "/props?model=smol", None),
        ("GET", "/slots?model=smol", None),
    ],
)
async def test_a_limited_key_reaches_no_other_model(
    dispatcher: FakeDispatcher, method: str, url: str, body: Any
) -> None:
    answer = await start(method, url, body, key=LIMITED_KEY).finish()
    assert answer.status == 404
    assert dispatcher.jobs == []
    assert dispatcher.questions == []


async def test_the_query_does_not_override_the_body(dispatcher: FakeDispatcher) -> None:
    body = {"model": "mini", "content": "x"}
    assert (await post("/tokenize?model=smol", body, key=LIMITED_KEY)).status == 200
