"""POST /v1/completions."""

from typing import Any

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Candidate, Done, FinishReason, TokenLogprob, Tokens
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import CONTEXT, NUM_VOCAB, FakeDispatcher, say

URL = "/v1/completions"


def ask(**fields: Any) -> dict[str, Any]:
    return {"model": "smol", **fields}


async def test_a_prompt_is_continued(dispatcher: FakeDispatcher) -> None:
    document = (await post(URL, ask(prompt="Hi"))).json()
    assert document["object"] == "text_completion"
    assert document["id"].startswith("cmpl-")
    assert document["choices"] == [
        {"text": "Hello", "index": 0, "logprobs": None, "finish_reason": "stop"}
    ]
    assert dispatcher.jobs[0].prompt_tokens == (1, ord("H"), ord("i"))
    assert dispatcher.jobs[0].max_tokens == 16
    assert dispatcher.questions[0].parse_special is True


async def test_a_stream_has_the_legacy_shape() -> None:
    answer = await post(URL, ask(prompt="Hi", stream=True))
    assert answer.data[-1] == "[DONE]"
    assert {chunk["object"] for chunk in answer.chunks} == {"text_completion"}
    assert [chunk["choices"][0]["text"] for chunk in answer.chunks] == ["Hel", "lo", ""]


async def test_choices_are_prompt_major(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: say(chr(job.prompt_tokens[-1]))
    document = (await post(URL, ask(prompt=["A", "B"], n=2))).json()
    assert [(c["index"], c["text"]) for c in document["choices"]] == [
        (0, "A"),
        (1, "A"),
        (2, "B"),
        (3, "B"),
    ]
    assert document["usage"]["prompt_tokens"] == 10


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ([65, 66], [(65, 66)]),
        ([[65], [66]], [(65,), (66,)]),
        ([NUM_VOCAB - 1], [(NUM_VOCAB - 1,)]),
        ("", [(1,)]),
    ],
)
async def test_prompts_may_be_token_ids(
    dispatcher: FakeDispatcher, prompt: Any, expected: list[tuple[int, ...]]
) -> None:
    assert (await post(URL, ask(prompt=prompt))).status == 200
    assert [job.prompt_tokens for job in dispatcher.jobs] == expected
    assert (await post(URL, ask(prompt=prompt, stream=True))).data[-1] == "[DONE]"
    assert [job.prompt_tokens for job in dispatcher.jobs] == expected * 2


@pytest.mark.parametrize(
    "prompt",
    [
        [],
        [[]],
        [-1],
        [NUM_VOCAB],
        [2**32 - 1],
        [1.5],
        [True],
        [[1, 2], [-1]],
        [[1], [NUM_VOCAB]],
        ["A", 5],
        [5, "A"],
        {"a": 1},
        5,
        None,
    ],
)
async def test_a_wrong_prompt_names_its_field(dispatcher: FakeDispatcher, prompt: Any) -> None:
    answer = await post(URL, ask(prompt=prompt))
    assert (answer.status, answer.error["param"]) == (400, "prompt")
    assert dispatcher.jobs == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"best_of": 1, "n": 2}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"suffix": "end"}, "suffix"),
        ({"logprobs": 6}, "logprobs"),
        ({"logprobs": -1}, "logprobs"),
        ({"logprobs": True}, "logprobs"),
        ({"echo": 1}, "echo"),
        ({"max_tokens": -3}, "max_tokens"),
        ({"max_tokens": 2**31}, "max_tokens"),
        ({"prompt": ["x"] * 129}, "prompt"),
        ({"prompt": ["x"] * 65, "n": 2}, "n"),
    ],
)
async def test_a_wrong_value_names_its_field(
    dispatcher: FakeDispatcher, fields: dict[str, Any], param: str
) -> None:
    answer = await post(URL, ask(prompt="Hi") | fields)
    assert (answer.status, answer.error["param"]) == (400, param)
    assert dispatcher.questions == []


@pytest.mark.parametrize("stream", [False, True])
async def test_nothing_asked_is_nothing_done(dispatcher: FakeDispatcher, stream: bool) -> None:
    answer = await post(URL, ask(prompt="Hello", echo=True, max_tokens=0, stream=stream))
    assert answer.status == 200
    assert dispatcher.jobs == []
    if stream:
        assert "".join(c["choices"][0]["text"] for c in answer.chunks) == "Hello"
    else:
        document = answer.json()
        assert document["choices"][0]["text"] == "Hello"
        assert document["choices"][0]["finish_reason"] == "length"
        assert document["usage"]["completion_tokens"] == 0


async def test_echo_repeats_token_prompts_as_text() -> None:
    document = (await post(URL, ask(prompt=[[65], [66]], echo=True))).json()
    assert [choice["text"] for choice in document["choices"]] == ["AHello", "BHello"]


async def test_legacy_logprobs_are_aligned(dispatcher: FakeDispatcher) -> None:
    one, two = Candidate(1, "Hé".encode().decode("latin-1"), -0.1), Candidate(2, "!", -2.0)
    entries = (TokenLogprob(one, (one, two)), TokenLogprob(two, ()))
    events = [Tokens("Hé!", (1, 2), entries), Done(FinishReason.LENGTH, 1, 0, 2)]
    dispatcher.script = lambda job: events
    document = (await post(URL, ask(prompt="x", logprobs=2))).json()
    assert document["choices"][0]["logprobs"] == {
        "tokens": ["Hé", "!"],
        "token_logprobs": [-0.1, -2.0],
        "top_logprobs": [{"Hé": -0.1, "!": -2.0}, {"!": -2.0}],
        "text_offset": [0, 2],
    }


async def test_best_of_keeps_the_likeliest(dispatcher: FakeDispatcher) -> None:
    def script(job: Any) -> Any:
        rank = len(dispatcher.jobs)
        candidate = Candidate(1, "x", -abs(rank - 2) - 1.0)
        tokens = Tokens(str(rank), (1,), (TokenLogprob(candidate, ()),))
        return [tokens, Done(FinishReason.EOS, 1, 0, 1)]

    dispatcher.script = script
    document = (await post(URL, ask(prompt="x", best_of=3))).json()
    assert [c["text"] for c in document["choices"]] == ["2"]
    assert document["choices"][0]["logprobs"] is None
    assert document["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("num_tokens", "status"), [(CONTEXT - 1, 200), (CONTEXT, 400), (CONTEXT + 1, 400)]
)
async def test_the_context_bounds_the_prompt(num_tokens: int, status: int) -> None:
    answer = await post(URL, ask(prompt=[1000] * num_tokens))
    assert answer.status == status
    if status == 400:
        assert answer.error["param"] == "prompt"
        assert answer.error["n_prompt_tokens"] == num_tokens


async def test_a_value_above_the_range_is_told_the_range() -> None:
    answer = await post(URL, ask(prompt="Hi", max_tokens=2**31))
    assert answer.error["message"].endswith("between -2 and 2147483647")


@pytest.mark.parametrize(
    ("url", "fields", "param"),
    [
        (URL, {"prompt": "Hi"}, "prompt"),
        ("/completion", {"prompt": [1], "logit_bias": [["Hi", 1]]}, "logit_bias"),
        ("/tokenize", {"content": "Hi"}, "content"),
        ("/embedding", {"model": "mini", "content": "Hi"}, "content"),
    ],
)
async def test_a_text_that_is_too_long_names_its_field(
    dispatcher: FakeDispatcher, url: str, fields: dict[str, Any], param: str
) -> None:
    dispatcher.ask_error = EngineError(ErrorCode.INVALID_PROMPT, "Too long.")
    answer = await post(url, ask() | fields)
    assert (answer.status, answer.error["param"]) == (400, param)


async def test_the_budget_is_cut_to_the_room_left(dispatcher: FakeDispatcher) -> None:
    await post(URL, ask(prompt=[1000] * (CONTEXT - 20), max_tokens=100))
    assert dispatcher.jobs[0].max_tokens == 20 + 1
