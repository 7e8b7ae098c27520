"""What a chat request may not hold: 400 with the field's name, and no job."""

from typing import Any

import pytest

from inference.protocol.sampling import SamplingParams
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import NUM_VOCAB, FakeDispatcher

URL = "/v1/chat/completions"
HI = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}]}
DEEP: list[Any] = []
for _ in range(50):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": {"role": "user", "content": "Hi"}}, "messages"),
        ({"messages": ["Hi"]}, "messages[0]"),
        ({"messages": [None]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": [], "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0].type",
        ),
        ({"messages": [{"role": "user", "content": "x", "name": 1}]}, "messages[0].name"),
        (
            {"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": 1}}]},
            "messages[0].function_call.arguments",
        ),
        (
            {"messages": [{"role": "assistant", "function_call": "f"}]},
            "messages[0].function_call",
        ),
        (
            {"messages": [{"role": "assistant", "content": "x", "tool_calls": {}}]},
            "messages[0].tool_calls",
        ),
        ({"messages": [{"role": "assistant", "refusal": 1}]}, "messages[0].refusal"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": None}}]}]},
            "messages[0].tool_calls[0].function.name",
        ),
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"model": 5}, "model"),
        ({"model": "mini"}, "model"),
        ({"temperature": 999999}, "temperature"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"frequency_penalty": -3}, "frequency_penalty"),
        ({"repeat_penalty": 0}, "repeat_penalty"),
        ({"min_p": 2}, "min_p"),
        ({"top_k": -2}, "top_k"),
        ({"top_k": 2**31}, "top_k"),
        ({"n": 0}, "n"),
        ({"n": 17}, "n"),
        ({"n": 10**30}, "n"),
        ({"n": "2"}, "n"),
        ({"n": True}, "n"),
        ({"seed": 2**64}, "seed"),
        ({"seed": -(2**63) - 1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": "7"}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -5}, "max_tokens"),
        ({"max_tokens": 2**63}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"n_predict": 0, "max_tokens": 5}, "n_predict"),
        ({"n_predict": -3}, "n_predict"),
        ({"min_tokens": 5, "max_tokens": 4}, "min_tokens"),
        ({"stop": ""}, "stop"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": ["1", "2", "3", "4", "5"]}, "stop"),
        ({"stop": [1]}, "stop"),
        ({"stop": "x" * 1_000_000}, "stop"),
        ({"top_logprobs": -1, "logprobs": True}, "top_logprobs"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": 3}, "logprobs"),
        ({"stream": "true"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"-1": 1}}, "logit_bias"),
        ({"logit_bias": {str(NUM_VOCAB): 1}}, "logit_bias"),
        ({"logit_bias": {"5": 101}}, "logit_bias"),
        ({"logit_bias": {"5": True}}, "logit_bias"),
        ({"logit_bias": {str(i): 1 for i in range(301)}}, "logit_bias"),
        ({"logit_bias": 5}, "logit_bias"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": {}}, "tools"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": "array", "maxItems": 100_000}},
                }
            },
            "response_format",
        ),
        ({"response_format": "json"}, "response_format"),
        ({"grammar": "root ::= " + "(" * 60000}, "grammar"),
        ({"grammar": 'root ::= "a"{99999999}'}, "grammar"),
        ({"grammar": "#" * 70000}, "grammar"),
        ({"json_schema": {"type": "set"}}, "json_schema"),
        ({"chat_template": "{{ 1 }}"}, "chat_template"),
        ({"lora": [{"id": 0, "scale": 1}]}, "lora[0].id"),
        ({"api_base": "http://169.254.169.254/"}, "api_base"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs.messages"),
        ({"chat_template_kwargs": []}, "chat_template_kwargs"),
        ({"samplers": ["top_z"]}, "samplers"),
        ({"samplers": "kz"}, "samplers"),
        ({"mirostat": 3}, "mirostat"),
    ],
)
async def test_a_wrong_value_names_its_field(
    dispatcher: FakeDispatcher, change: dict[str, Any], param: str
) -> None:
    answer = await post(URL, HI | change)
    assert (answer.status, answer.error["param"]) == (400, param)
    assert answer.error["type"] == "invalid_request_error"
    assert isinstance(answer.error["code"], str)
    assert dispatcher.jobs == []


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0},
        {"temperature": 2},
        {"top_p": 1},
        {"top_k": -1},
        {"stop": []},
        {"stop": ["a", "b", "c", "d"]},
        {"logprobs": True},
        {"logprobs": True, "top_logprobs": 20},
        {"logprobs": False},
        {"seed": 2**64 - 1},
        {"logit_bias": {str(NUM_VOCAB - 1): -100}},
        {"logit_bias": [[5, False]]},
        {"tools": [], "tool_choice": "auto"},
        {"response_format": {"type": "text"}},
        {"foo": 1, "metadata": {"a": "b"}},
        {"x": DEEP},
        {"samplers": ["top_k", "typical_p", "temperature"]},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ],
)
async def test_a_value_at_the_border_is_taken(change: dict[str, Any]) -> None:
    assert (await post(URL, HI | change)).status == 200


@pytest.mark.parametrize("name", ["no-such-model", "SMOL", "smol ", "\ud83d\ude00"])
async def test_an_unknown_model_is_404(name: str) -> None:
    answer = await post(URL, HI | {"model": name})
    assert (answer.status, answer.error["code"]) == (404, "model_not_found")
    assert answer.error["param"] == "model"


async def test_every_sampler_reaches_the_job(dispatcher: FakeDispatcher) -> None:
    sampling: dict[str, Any] = {
        "temperature": 0.5,
        "top_k": 7,
        "min_p": 0.25,
        "repeat_penalty": 1.5,
        "dry_multiplier": 0.5,
        "xtc_probability": 0.5,
        "mirostat": 2,
        "samplers": "kpt",
        "seed": 0,
        "logit_bias": {"5": -100, "6": 1},
        "grammar": 'root ::= "x"',
    }
    await post(URL, HI | sampling)
    (job,) = dispatcher.jobs
    assert job.sampling == SamplingParams(
        **(sampling | {"top_p": 1.0})
        | {"samplers": ("top_k", "top_p", "temperature"), "logit_bias": ((5, -100.0), (6, 1.0))}
    )


@pytest.mark.parametrize(("seed", "expected"), [(0, 0), (2**33, 2), (2**32 - 2, 2**32 - 2)])
async def test_seeds_fit_the_engine(dispatcher: FakeDispatcher, seed: int, expected: int) -> None:
    await post(URL, HI | {"seed": seed})
    assert dispatcher.jobs[0].sampling.seed == expected


@pytest.mark.parametrize("fields", [{}, {"seed": None}, {"seed": -1}, {"seed": 2**32 - 1}])
async def test_a_random_seed_is_drawn_before_the_job_leaves(
    dispatcher: FakeDispatcher, fields: dict[str, Any]
) -> None:
    for _ in range(2):
        await post(URL, HI | fields)
    one, other = (job.sampling.seed for job in dispatcher.jobs)
    assert one is not None
    assert one != other
