"""llama-server's routes."""

import asyncio
from typing import Any

import pytest

from inference.protocol.events import (
    Candidate,
    Done,
    FinishReason,
    Progress,
    Started,
    TokenLogprob,
    Tokens,
)
from tests.llamero.api.asgi_client import get, post, start
from tests.llamero.api.fakes import CONTEXT, FakeDispatcher, say

URL = "/completion"


async def test_a_completion_has_the_native_shape(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: say("a\n", "b", reason=FinishReason.LENGTH)
    document = (await post(URL, {"prompt": "Hi", "n_predict": 2, "return_tokens": True})).json()
    expected = {
        "index": 0,
        "content": "a\nb",
        "tokens": [100, 101],
        "id_slot": 3,
        "stop": True,
        "model": "smol",
        "tokens_predicted": 2,
        "tokens_evaluated": 5,
        "prompt": "\x01Hi",
        "has_new_line": True,
        "truncated": False,
        "stop_type": "limit",
        "stopping_word": "",
        "tokens_cached": 6,
    }
    assert expected.items() <= document.items()
    assert document["generation_settings"]["temperature"] == pytest.approx(0.8)
    assert document["timings"]["predicted_n"] == 2
    assert dispatcher.jobs[0].max_tokens == 2


async def test_what_a_context_shift_keeps_can_be_chosen(dispatcher: FakeDispatcher) -> None:
    for n_keep in (-1, 7):
        await post(URL, {"prompt": "Hi", "n_keep": n_keep})
    assert [job.num_keep for job in dispatcher.jobs] == [-1, 7]
    assert (await post(URL, {"prompt": "Hi", "n_keep": -2})).status == 400


async def test_a_stream_has_no_done_marker(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [
        Started(1, 2),
        Progress(4, 5),
        *say("a", "b")[1:],
    ]
    answer = await post(URL, {"prompt": "Hi", "stream": True, "return_progress": True})
    assert "[DONE]" not in answer.data
    first, second, one, two, last = answer.chunks
    assert first["prompt_progress"] == {"total": 3, "cache": 2, "processed": 2, "time_ms": 0}
    assert second["prompt_progress"]["processed"] == 4
    assert (one["content"], one["tokens"], one["stop"], one["tokens_predicted"]) == (
        "a",
        [100],
        False,
        1,
    )
    assert two["content"] == "b"
    assert last["stop"] is True
    assert last["stop_type"] == "eos"


async def test_a_stream_tells_every_token(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [
        Tokens("", (5,)),
        Tokens("é", (6,)),
        Tokens("", (2,)),
        Done(FinishReason.EOS, 1, 0, 3),
    ]
    frames = (await post(URL, {"prompt": "x", "stream": True})).chunks
    assert [frame["content"] for frame in frames] == ["é", ""]
    assert [frame["tokens"] for frame in frames] == [[5, 6], [2]]


async def test_several_prompts_make_a_list(dispatcher: FakeDispatcher) -> None:
    document = (await post(URL, {"prompt": ["A", [66, 67]], "n_predict": 1})).json()
    assert [(one["index"], one["prompt"]) for one in document] == [(0, "\x01A"), (1, "BC")]
    body = {"prompt": [[65], ["A", 66], {"prompt_string": "A"}], "n_predict": 1}
    document = (await post(URL, body)).json()
    assert [one["prompt"] for one in document] == ["A", "\x01AB", "\x01A"]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (["A", 66], (1, 65, 66)),
        ([65, "B"], (65, 66)),
        ({"prompt_string": "A"}, (1, 65)),
        ("", (1,)),
    ],
)
async def test_a_prompt_may_mix_text_and_ids(
    dispatcher: FakeDispatcher, prompt: Any, expected: tuple[int, ...]
) -> None:
    assert (await post(URL, {"prompt": prompt})).status == 200
    assert [job.prompt_tokens for job in dispatcher.jobs] == [expected]


async def test_probabilities_come_in_either_form(dispatcher: FakeDispatcher) -> None:
    chosen = Candidate(5, "a", -0.5)
    events = [
        Tokens("a", (5,), (TokenLogprob(chosen, (chosen,)),)),
        Done(FinishReason.EOS, 1, 0, 1),
    ]
    dispatcher.script = lambda job: events
    plain = (await post(URL, {"prompt": "x", "n_probs": 1})).json()
    assert plain["completion_probabilities"][0]["top_logprobs"][0]["logprob"] == -0.5
    body = {"prompt": "x", "n_probs": 1, "post_sampling_probs": True}
    after = (await post(URL, body)).json()
    assert 0.6 < after["completion_probabilities"][0]["top_probs"][0]["prob"] < 0.61


async def test_only_the_wanted_fields_come_back() -> None:
    body = {"prompt": "x", "response_fields": ["content", "generation_settings/n_predict"]}
    expected = {"content": "Hello", "generation_settings/n_predict": -1}
    assert (await post(URL, body)).json() == expected


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n_predict": -3}, "n_predict"),
        ({"n_predict": 1.5}, "n_predict"),
        ({"n_probs": 2147483647}, "n_probs"),
        ({"n_probs": -1}, "n_probs"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[1], [-1]]}, "prompt"),
        ({"prompt": {"prompt_string": "a", "multimodal_data": ["x"]}}, "prompt"),
        ({"stop": [""]}, "stop"),
        ({"response_fields": 1}, "response_fields"),
    ],
)
async def test_errors_have_numeric_codes(fields: dict[str, Any], param: str) -> None:
    answer = await post(URL, {"prompt": "Hi"} | fields)
    assert (answer.status, answer.error["param"], answer.error["code"]) == (400, param, 400)


async def test_an_overlong_prompt_has_its_own_type() -> None:
    answer = await post(URL, {"prompt": [5] * CONTEXT, "stream": True})
    error = answer.error
    assert (answer.status, error["type"], error["code"]) == (400, "exceed_context_size_error", 400)
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (CONTEXT, CONTEXT)


async def test_zero_tokens_are_zero_tokens(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [Done(FinishReason.LENGTH, 3, 0, 0)]
    for cache_prompt in (True, False):
        body = {"prompt": "Hi", "n_predict": 0, "cache_prompt": cache_prompt}
        document = (await post(URL, body)).json()
        assert (document["content"], document["tokens_predicted"]) == ("", 0)
    # Without a cache to fill there is nothing to do.
    assert [job.max_tokens for job in dispatcher.jobs] == [0]


async def test_tokenize_and_back(dispatcher: FakeDispatcher) -> None:
    assert (await post("/tokenize", {"content": "Hi"})).json() == {"tokens": [72, 105]}
    question = dispatcher.questions[0]
    assert (question.add_special, question.parse_special) == (False, True)
    pieces = (await post("/tokenize", {"content": "é", "with_pieces": True})).json()
    assert pieces == {"tokens": [{"id": 233, "piece": "é"}]}
    assert (await post("/detokenize", {"tokens": [72, 105]})).json() == {"content": "Hi"}
    assert (await post("/detokenize", {"tokens": []})).json() == {"content": ""}


@pytest.mark.parametrize("tokens", [[999999], "x", [-1], [[1]], ["a"], [True], 5])
async def test_detokenize_names_its_field(tokens: Any) -> None:
    answer = await post("/detokenize", {"tokens": tokens})
    assert (answer.status, answer.error["param"]) == (400, "tokens")


async def test_the_template_can_be_seen() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    document = (await post("/apply-template", {"messages": messages})).json()
    assert document == {"prompt": "user:Hi\n"}


async def test_props_tell_no_path() -> None:
    document = (await get("/props")).json()
    assert document["default_generation_settings"]["n_ctx"] == CONTEXT
    assert document["total_slots"] == 2
    assert document["model_path"] == "smol.gguf"


async def test_slots_tell_neither_owner_nor_job() -> None:
    answer = await get("/slots?model=smol")
    first, second = answer.json()
    assert (first["is_processing"], second["is_processing"]) == (True, False)
    assert first["next_token"][0]["n_decoded"] == 4
    assert b"key:9" not in answer.body
    assert b"job-of-another" not in answer.body


async def test_a_slot_is_idle_as_soon_as_its_job_has_ended(dispatcher: FakeDispatcher) -> None:
    dispatcher.cancelled = ["job-of-another"]
    first, second = (await get("/slots?model=smol")).json()
    assert first == second | {"id": 0}


async def test_a_model_may_be_named_in_the_path() -> None:
    document = (await post("/m/org/big:1b/completion", {"prompt": "x"})).json()
    assert document["model"] == "org/big:1b"


@pytest.mark.parametrize("name", [[], {}, 0, False])
async def test_a_model_that_is_no_name_is_refused(name: Any) -> None:
    answer = await post("/tokenize", {"content": "x", "model": name})
    assert (answer.status, answer.error["param"]) == (400, "model")


async def test_a_client_that_leaves_stops_its_job(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [Tokens("a", (1,)), asyncio.Event()]
    exchange = start("POST", URL, {"prompt": "x", "stream": True})
    await exchange.wait_for(b'"a"')
    await exchange.hang_up()
    assert dispatcher.streams[0].is_closed
