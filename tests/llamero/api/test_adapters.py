"""Requests choose adapters and bound guesses."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from inference.protocol.events import Done, FinishReason
from inference.protocol.replicas import AdapterFacts
from tests.llamero.api import fakes
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FakeDispatcher, say

ADAPTERS = (AdapterFacts(name="polite", scale=0.5), AdapterFacts(name="legal"))
CHAT = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the model know two adapters."""
    monkeypatch.setattr(fakes, "FACTS", msgspec.structs.replace(fakes.FACTS, adapters=ADAPTERS))
    yield


@pytest.mark.usefixtures("adapters")
async def test_adapters_are_listed_without_their_files(dispatcher: FakeDispatcher) -> None:
    listed = (await get("/lora-adapters")).json()
    assert [(one["id"], one["path"], one["scale"]) for one in listed] == [
        (0, "polite", 0.5),
        (1, "legal", 0.0),
    ]


async def test_a_model_without_adapters_lists_none(dispatcher: FakeDispatcher) -> None:
    assert (await get("/lora-adapters")).json() == []


@pytest.mark.usefixtures("adapters")
async def test_nobody_sets_scales_for_others(dispatcher: FakeDispatcher) -> None:
    response = await post("/lora-adapters", [{"id": 0, "scale": 1.0}])
    assert response.status == 403
    assert "lora" in response.json()["error"]["message"]


@pytest.mark.usefixtures("adapters")
@pytest.mark.parametrize(
    ("lora", "loras"),
    [
        ([], ()),
        ([{"id": 0, "scale": 0.5}], ((0, 0.5),)),
        ([{"id": "legal", "scale": 2}, {"id": 0, "scale": -1}], ((1, 2.0), (0, -1.0))),
        (None, None),
    ],
)
@pytest.mark.parametrize("url", ["/completion", "/v1/completions", CHAT])
async def test_a_request_chooses(
    dispatcher: FakeDispatcher, lora: Any, loras: Any, url: str
) -> None:
    body = {"messages": MESSAGES} if url == CHAT else {"prompt": "Hi"}
    response = await post(url, {"model": "smol", **body, "lora": lora})
    assert response.status == 200
    assert dispatcher.jobs[0].loras == loras


@pytest.mark.usefixtures("adapters")
@pytest.mark.parametrize(
    ("lora", "param"),
    [
        ({"id": 0, "scale": 1}, "lora"),
        ("polite", "lora"),
        ([0], "lora[0]"),
        ([{"id": 0, "scale": 1}, {"id": 2, "scale": 1}], "lora[1].id"),
        ([{"id": -1, "scale": 1}], "lora[0].id"),
        ([{"id": "nobody", "scale": 1}], "lora[0].id"),
        ([{"id": True, "scale": 1}], "lora[0].id"),
        ([{"id": 0.5, "scale": 1}], "lora[0].id"),
        ([{"scale": 1}], "lora[0].id"),
        ([{"id": 0}], "lora[0].scale"),
        ([{"id": 0, "scale": "1"}], "lora[0].scale"),
        ([{"id": 0, "scale": True}], "lora[0].scale"),
        ([{"id": 0, "scale": 100.5}], "lora[0].scale"),
        ([{"id": 0, "scale": 1}, {"id": "polite", "scale": 1}], "lora[1].id"),
        ([{"id": 0, "scale": 1}] * 65, "lora"),
    ],
)
async def test_a_wrong_choice_is_named(dispatcher: FakeDispatcher, lora: Any, param: str) -> None:
    response = await post(CHAT, {"model": "smol", "messages": MESSAGES, "lora": lora})
    assert response.status == 400
    assert response.json()["error"]["param"] == param
    assert not dispatcher.jobs


async def test_a_model_without_adapters_says_so(dispatcher: FakeDispatcher) -> None:
    response = await post("/completion", {"prompt": "Hi", "lora": [{"id": 0, "scale": 1}]})
    assert response.status == 400
    assert "no adapters" in response.json()["error"]["message"]


async def test_guesses_can_be_bounded(dispatcher: FakeDispatcher) -> None:
    fields = {"speculative.n_max": 5, "speculative.n_min": 2, "speculative.p_min": 0.75}
    await post("/completion", {"prompt": "Hi", **fields, "speculative.type": "ngram"})
    await post("/completion", {"prompt": "Hi", "speculative.n_max": None})
    limits = [
        (job.num_draft_tokens, job.min_draft_tokens, job.min_draft_likely)
        for job in dispatcher.jobs
    ]
    assert limits == [(5, 2, 0.75), (None, 0, 0.0)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_max", -1), ("n_max", 1025), ("n_max", "3"), ("n_max", True), ("n_min", 1.5), ("p_min", 2)],
)
async def test_wrong_bounds_are_named(dispatcher: FakeDispatcher, name: str, value: Any) -> None:
    response = await post("/completion", {"prompt": "Hi", f"speculative.{name}": value})
    assert response.status == 400
    assert f"speculative.{name}" in response.json()["error"]["message"]


async def test_timings_tell_of_guesses_where_there_were_any(dispatcher: FakeDispatcher) -> None:
    timings = (await post("/completion", {"prompt": "Hi"})).json()["timings"]
    assert "draft_n" not in timings
    done = Done(FinishReason.EOS, 5, 0, 2, num_drafted_tokens=9, num_accepted_tokens=7)
    dispatcher.script = lambda job: [*say("a")[:-1], done]
    timings = (await post("/completion", {"prompt": "Hi"})).json()["timings"]
    assert (timings["draft_n"], timings["draft_n_accepted"]) == (9, 7)
