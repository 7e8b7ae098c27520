"""Below ``/m/<model>/`` everything is about that model, whatever else a request says."""

from typing import Any

import pytest

from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FakeDispatcher

HI = [{"role": "user", "content": "Hi"}]
BODIES = {
    "v1/chat/completions": {"messages": HI},
    "v1/chat/completions/input_tokens": {"messages": HI},
    "v1/completions": {"prompt": "x"},
    "v1/responses": {"input": "x", "store": False},
    "v1/responses/input_tokens": {"input": "x"},
    "v1/messages": {"messages": HI, "max_tokens": 5},
    "v1/messages/count_tokens": {"messages": HI},
    "chat/completions": {"messages": HI},
    "responses": {"input": "x", "store": False},
    "responses/input_tokens": {"input": "x"},
    "completion": {"prompt": "x"},
    "tokenize": {"content": "x"},
    "detokenize": {"tokens": [97]},
    "apply-template": {"messages": HI},
}


@pytest.mark.parametrize("name", ["nothing", None, 5])
@pytest.mark.parametrize("path", BODIES)
async def test_the_path_names_the_model(path: str, name: Any) -> None:
    answer = await post(f"/m/smol/{path}?model=nothing", BODIES[path] | {"model": name})
    assert answer.status == 200, answer.body
    assert answer.json().get("model", "smol") == "smol"


@pytest.mark.parametrize("path", ["v1/embeddings", "embedding"])
async def test_so_it_does_for_vectors(path: str, dispatcher: FakeDispatcher) -> None:
    await post(f"/m/mini/{path}", {"input": "x", "model": "smol"})
    assert [job.deployment for job in dispatcher.jobs] == ["mini"]


async def test_the_body_goes_before_the_query() -> None:
    body = {"prompt": "x", "model": "nothing"}
    assert (await post("/completion?model=smol", body)).status == 404
    assert (await post("/completion?model=nothing", body | {"model": "smol"})).status == 200


async def test_it_is_like_a_server_of_its_own() -> None:
    for path in ("models", "v1/models"):
        assert [one["id"] for one in (await get(f"/m/tiny/{path}")).json()["data"]] == ["smol"]
    assert (await get("/m/tiny/health", key=None)).status == 200
    assert (await get("/m/nothing/v1/models")).status == 404


@pytest.mark.parametrize("name", ["smol", "tiny", "gpt-3.5-turbo", "a/b:c", "mini"])
async def test_a_model_can_be_asked_for_by_any_name_there(name: str) -> None:
    answer = await get(f"/m/tiny/v1/models/{name}")
    assert (answer.status, answer.json()["id"]) == (200, "smol")
    anthropic = await get(f"/m/tiny/v1/models/{name}", headers={"anthropic-version": "2023-06-01"})
    assert anthropic.json()["type"] == "model"
    assert (await get(f"/m/nothing/v1/models/{name}")).status == 404


async def test_streams_can_be_come_back_to_at_the_same_address() -> None:
    headers = {"X-Conversation-Id": "talk"}
    body = {"messages": HI, "stream": True}
    told = await post("/m/smol/v1/chat/completions", body, headers=headers)
    assert (await get("/m/smol/v1/stream?conv_id=talk")).body == told.body
    found = await post("/m/smol/v1/streams/lookup", {"conversation_ids": ["talk"]})
    assert [one["conversation_id"] for one in found.json()] == ["talk"]
    run = told.headers["x-llamero-run"]
    assert (await get(f"/m/smol/v1/runs/{run}/events")).chunks == told.chunks
