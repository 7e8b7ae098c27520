"""Biases on tokens: by id, by text, with false."""

from typing import Any

import pytest

from inference.protocol.jobs import decode_job, encode_job
from inference.protocol.text import Tokenize
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import NUM_VOCAB, FakeDispatcher

BAN = None
CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([[5, 2]], ((5, 2.0),)),
        ([[5, False], [6, -1.5]], ((5, BAN), (6, -1.5))),
        ([["ab", 3]], ((97, 3.0), (98, 3.0))),
        ([["a", False], [5, 1]], ((5, 1.0), (97, BAN))),
        ({"5": -1}, ((5, -1.0),)),
        ({"ab": False}, ((97, BAN), (98, BAN))),
        ({" 5": 1}, ((32, 1.0), (53, 1.0))),
        ({"5": False, "é": 0.5}, ((5, BAN), (233, 0.5))),
        ({}, ()),
        ([], ()),
        (None, ()),
        ([[5, 1], [5, 2]], ((5, 1.0), (5, 2.0))),
    ],
)
async def test_all_shapes_of_llama_server_are_read(
    dispatcher: FakeDispatcher, value: Any, expected: tuple[tuple[int, float | None], ...]
) -> None:
    answer = await post("/completion", {"prompt": [65], "logit_bias": value})
    assert answer.status == 200
    assert dispatcher.jobs[0].sampling.logit_bias == expected
    assert answer.json()["generation_settings"]["logit_bias"] == [
        {"token": token, "bias": bias} for token, bias in expected
    ]
    # The job reaches its worker as JSON, which has no infinity.
    assert decode_job(encode_job(dispatcher.jobs[0])) == dispatcher.jobs[0]


async def test_texts_are_tokenized_as_plain_text_in_one_question(
    dispatcher: FakeDispatcher,
) -> None:
    await post("/completion", {"prompt": [65], "logit_bias": [["</s>", -1], ["b", 1]]})
    questions = [question for question in dispatcher.questions if isinstance(question, Tokenize)]
    assert questions == [Tokenize(texts=("</s>", "b"), parse_special=False)]


@pytest.mark.parametrize(
    ("url", "body"),
    [("/v1/completions", {"model": "smol", "prompt": "x"}), ("/v1/chat/completions", CHAT)],
)
async def test_openai_routes_take_ids_as_keys_and_texts_in_pairs(
    dispatcher: FakeDispatcher, url: str, body: dict[str, Any]
) -> None:
    assert (await post(url, body | {"logit_bias": {"5": False}})).status == 200
    assert (await post(url, body | {"logit_bias": [["b", 7]]})).status == 200
    assert [job.sampling.logit_bias for job in dispatcher.jobs] == [((5, BAN),), ((98, 7.0),)]
    refused = await post(url, body | {"logit_bias": {"b": 7}})
    assert (refused.status, refused.error["param"]) == (400, "logit_bias")


@pytest.mark.parametrize(
    "value",
    [
        5,
        "5",
        True,
        [5],
        [[5]],
        [[5, 1, 2]],
        [[5, True]],
        [[5, None]],
        [[5, "1"]],
        [[5, 101]],
        [[5, -100.5]],
        [[5.0, 1]],
        [[True, 1]],
        [[None, 1]],
        [[[5], 1]],
        [["", 1]],
        [[-1, 1]],
        [[2**31, 1]],
        [[NUM_VOCAB, 1]],
        {"": 1},
        {"-1": 1},
        {"99999999999": 1},
        {str(NUM_VOCAB): 1},
        {"5": True},
        {"5": None},
        {"5": []},
        [[5, 1]] * 301,
        [["x" * 100, 1]] * 41,
    ],
)
async def test_what_is_no_bias_is_refused(dispatcher: FakeDispatcher, value: Any) -> None:
    answer = await post("/completion", {"prompt": [65], "logit_bias": value})
    assert (answer.status, answer.error["param"]) == (400, "logit_bias")
    assert dispatcher.jobs == []


@pytest.mark.parametrize("bias", [b"NaN", b"Infinity", b"1e999", b"-1e999"])
async def test_numbers_that_are_none_are_refused(dispatcher: FakeDispatcher, bias: bytes) -> None:
    answer = await post("/completion", b'{"prompt": [65], "logit_bias": [[5, ' + bias + b"]]}")
    assert answer.status == 400
    assert dispatcher.jobs == []
