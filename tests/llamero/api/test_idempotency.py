"""One key, one answer: repeated to whoever asks again, made once however many ask at a time."""

import asyncio
from typing import Any

import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Vectors
from tests.llamero.api.asgi_client import Answer, post, start
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.fakes import FakeDispatcher, engine_error, say

CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}
URL = "/v1/chat/completions"
KEYED = {"idempotency-key": "order-42"}


async def ask(url: str = URL, body: Any = CHAT, **options: Any) -> Answer:
    return await post(url, body, headers=KEYED, **options)


async def test_an_answer_is_repeated(dispatcher: FakeDispatcher) -> None:
    first, second = await ask(), await ask()
    assert first.status == second.status == 200
    assert first.json() == second.json()
    assert len(dispatcher.jobs) == 1
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


async def test_without_a_key_each_request_is_its_own(dispatcher: FakeDispatcher) -> None:
    first, second = await post(URL, CHAT), await post(URL, CHAT)
    assert first.json()["id"] != second.json()["id"]
    assert len(dispatcher.jobs) == 2


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("/v1/completions", {"model": "smol", "prompt": "Once"}),
        ("/completion", {"prompt": "Once"}),
        ("/m/smol/v1/completions", {"prompt": "Once"}),
        ("/v1/messages", CHAT | {"max_tokens": 5}),
    ],
)
async def test_every_generating_route_repeats(
    dispatcher: FakeDispatcher, url: str, body: Any
) -> None:
    first, second = await ask(url, body), await ask(url, body)
    assert (first.status, first.body) == (200, second.body)
    assert len(dispatcher.jobs) == 1


async def test_vectors_are_repeated(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [Vectors(0, 1, ("AACAPw==",)), say("")[-1]]
    body = {"model": "mini", "input": "a cat"}
    first, second = await ask("/v1/embeddings", body), await ask("/v1/embeddings", body)
    assert (first.status, first.body) == (200, second.body)
    assert len(dispatcher.jobs) == 1


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (URL, CHAT | {"max_tokens": 5}),
        (URL, CHAT | {"stream": True}),
        (URL + "?x=1", CHAT),
        ("/v1/completions", {"model": "smol", "prompt": "Once"}),
    ],
)
async def test_a_key_is_for_one_request(url: str, body: Any) -> None:
    await ask()
    answer = await ask(url, body)
    assert (answer.status, answer.error["code"]) == (422, "idempotency_key_reused")
    assert answer.error["type"] == "invalid_request_error"
    assert answer.error["param"] == "Idempotency-Key"


async def test_each_caller_has_keys_of_their_own(dispatcher: FakeDispatcher) -> None:
    body = {"model": "mini", "content": "x"}
    mine, theirs = await ask("/tokenize", body), await ask("/tokenize", body, key=LIMITED_KEY)
    assert mine.status == theirs.status == 200
    assert "idempotent-replayed" not in theirs.headers


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "é"])
async def test_a_key_that_is_none_is_refused(dispatcher: FakeDispatcher, key: str) -> None:
    answer = await post(URL, CHAT, headers={"idempotency-key": key})
    assert (answer.status, answer.error["param"]) == (400, "Idempotency-Key")
    assert dispatcher.jobs == []


async def test_a_failure_is_tried_again(dispatcher: FakeDispatcher) -> None:
    dispatcher.submit_error, dispatcher.num_accepted = engine_error(ErrorCode.QUEUE_FULL), 0
    assert (await ask()).status == 503
    dispatcher.submit_error = None
    answer = await ask()
    assert answer.status == 200
    assert "idempotent-replayed" not in answer.headers


async def test_what_is_invalid_claims_nothing(dispatcher: FakeDispatcher) -> None:
    assert (await ask(body=CHAT | {"temperature": 9})).status == 400
    assert dispatcher.answers.num_claims == 0
    assert (await ask()).status == 200


async def test_who_comes_meanwhile_waits_for_the_answer(dispatcher: FakeDispatcher) -> None:
    gate = asyncio.Event()
    dispatcher.script = lambda job: [gate, *say("Hello")]
    first, second = start("POST", URL, CHAT, headers=KEYED), start("POST", URL, CHAT, headers=KEYED)
    while dispatcher.answers.num_claims < 3:
        await asyncio.sleep(0.01)
    gate.set()
    answers = await asyncio.gather(first.finish(), second.finish())
    assert answers[0].body == answers[1].body
    assert len(dispatcher.jobs) == 1


async def test_an_answer_outlives_its_client(dispatcher: FakeDispatcher) -> None:
    gate = asyncio.Event()
    dispatcher.script = lambda job: [gate, *say("Hello")]
    leaving = start("POST", URL, CHAT, headers=KEYED)
    while not dispatcher.jobs:
        await asyncio.sleep(0.01)
    await leaving.hang_up()
    gate.set()
    answer = await ask()
    assert answer.json()["choices"][0]["message"]["content"] == "Hello"
    assert answer.headers["idempotent-replayed"] == "true"
    assert len(dispatcher.jobs) == 1
    assert not dispatcher.streams[0].is_cancelled


async def test_a_stream_is_told_again(dispatcher: FakeDispatcher) -> None:
    body = CHAT | {"stream": True}
    first, second = await ask(body=body), await ask(body=body)
    assert first.data == second.data
    assert first.data[-1] == "[DONE]"
    assert first.headers["x-llamero-run"] == second.headers["x-llamero-run"]
    assert second.headers["idempotent-replayed"] == "true"
    assert len(dispatcher.jobs) == 1


async def test_a_stream_whose_run_is_lost_is_made_again(dispatcher: FakeDispatcher) -> None:
    body = CHAT | {"stream": True}
    first = await ask(body=body)
    dispatcher.kept.clear()
    second = await ask(body=body)
    assert second.status == 200
    assert first.headers["x-llamero-run"] != second.headers["x-llamero-run"]
    assert len(dispatcher.jobs) == 2


async def test_a_stream_that_is_refused_leaves_the_key_free(dispatcher: FakeDispatcher) -> None:
    body = CHAT | {"stream": True}
    dispatcher.submit_error, dispatcher.num_accepted = engine_error(ErrorCode.QUEUE_FULL), 0
    await ask(body=body)
    dispatcher.submit_error = None
    assert (await ask(body=body)).data[-1] == "[DONE]"


async def test_many_who_wait_are_told_to_come_back(dispatcher: FakeDispatcher) -> None:
    gate = asyncio.Event()
    dispatcher.script = lambda job: [gate, *say("Hello")]
    exchanges = [start("POST", URL, CHAT, headers=KEYED) for _ in range(20)]
    while dispatcher.answers.num_claims < 30:
        await asyncio.sleep(0.01)
    gate.set()
    answers = await asyncio.gather(*(one.finish() for one in exchanges))
    refused = [one for one in answers if one.status == 409]
    assert len(refused) == 3
    assert refused[0].error["code"] == "idempotency_key_in_use"
    assert "retry-after" in refused[0].headers
    assert len({one.body for one in answers if one.status == 200}) == 1
