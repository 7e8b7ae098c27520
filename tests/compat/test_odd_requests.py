"""Requests that servers of this kind got wrong, against the whole product."""

import json
from typing import Any

import jsonschema
import pytest

from llamero.api.anthropic.request import MessagesSerializer
from llamero.api.fields import RequestSerializer
from llamero.api.native.completion_request import CompletionSerializer
from llamero.api.openai.chat_request import ChatSerializer
from llamero.api.openai.completion_request import CompletionSerializer as TextSerializer
from tests.compat.conftest import HI, RawClient
from tests.live import CHAT_MODEL, EMBEDDING_MODEL

pytestmark = pytest.mark.model


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/completions", {"prompt": [-1]}, "prompt"),
        ("/v1/completions", {"prompt": [49152]}, "prompt"),
        ("/v1/completions", {"prompt": [4294967295]}, "prompt"),
        ("/v1/completions", {"prompt": [[1, 2], [-1]]}, "prompt"),
        ("/v1/completions", {"prompt": [True]}, "prompt"),
        ("/v1/completions", {"prompt": []}, "prompt"),
        ("/completion", {"prompt": [49152]}, "prompt"),
        ("/v1/embeddings", {"input": [30522], "model": EMBEDDING_MODEL}, "input"),
        ("/v1/completions", {"prompt": ["A", 5]}, "prompt"),
        ("/v1/completions", {"prompt": "Hi", "logprobs": 6}, "logprobs"),
        ("/v1/completions", {"prompt": "Hi", "suffix": "end"}, "suffix"),
        ("/v1/chat/completions", {"messages": HI, "top_logprobs": 2}, "top_logprobs"),
        ("/v1/chat/completions", {"messages": HI, "logit_bias": {"49152": 1}}, "logit_bias"),
        ("/v1/chat/completions", {"messages": HI, "model": EMBEDDING_MODEL}, "model"),
        ("/v1/embeddings", {"input": "x", "model": EMBEDDING_MODEL, "dimensions": 5}, "dimensions"),
        ("/detokenize", {"tokens": [999999]}, "tokens"),
    ],
)
def test_a_wrong_value_is_400_and_harms_nobody(
    raw: RawClient, path: str, body: dict[str, Any], param: str
) -> None:
    answer = raw.post(path, **{"model": CHAT_MODEL, **body})
    assert (answer.status, answer.error["param"]) == (400, param)
    assert raw.chat(max_tokens=1).status == 200


@pytest.mark.parametrize(
    ("path", "body", "serializer"),
    [
        ("/v1/chat/completions", {"messages": HI}, ChatSerializer),
        ("/v1/completions", {"prompt": "x"}, TextSerializer),
        ("/v1/messages", {"messages": HI}, MessagesSerializer),
        ("/completion", {"prompt": "x"}, CompletionSerializer),
    ],
)
def test_a_null_is_no_field(
    raw: RawClient, path: str, body: dict[str, Any], serializer: type[RequestSerializer]
) -> None:
    given = {"model": CHAT_MODEL, "max_tokens": 2, **body}
    answer = raw.post(path, **dict.fromkeys(serializer().fields) | given)
    assert answer.status == 200, answer.body
    assert answer.json()["model"] == CHAT_MODEL


def test_every_prompt_has_its_own_choice(raw: RawClient) -> None:
    def ask(prompt: Any, **fields: Any) -> list[str]:
        body = {"model": CHAT_MODEL, "max_tokens": 2, "temperature": 0, **fields}
        choices = raw.post("/v1/completions", prompt=prompt, **body).json()["choices"]
        assert [choice["index"] for choice in choices] == list(range(len(choices)))
        return [choice["text"] for choice in choices]

    first, second = ask("A"), ask("B")
    assert ask(["A", "B"]) == first + second
    assert ask(["A", "B"], n=2) == first * 2 + second * 2
    assert len(ask([19, 20])) == 1
    assert ask([[19], [20]]) == ask([19]) + ask([20])


@pytest.mark.parametrize("prompt", ["", "   ", "\x04", [49151]])
def test_a_prompt_of_next_to_nothing_is_answered(raw: RawClient, prompt: Any) -> None:
    body = {"model": CHAT_MODEL, "prompt": prompt, "max_tokens": 2}
    assert raw.post("/v1/completions", **body).status == 200
    if isinstance(prompt, str):
        messages = [{"role": "user", "content": prompt}]
        assert raw.chat(messages=messages, max_tokens=1).status == 200


def test_a_very_long_word_stops_nobody_else(raw: RawClient) -> None:
    waiting = raw.open("POST", "/tokenize", {"content": "a" * 200_000, "model": CHAT_MODEL})
    assert all(raw.send("GET", "/health").status == 200 for _ in range(5))
    assert waiting.getresponse().status == 200
    waiting.close()


def test_markers_in_messages_are_plain_text(raw: RawClient) -> None:
    def count(text: str) -> int:
        answer = raw.chat(messages=[{"role": "user", "content": text}], max_tokens=1)
        return int(answer.json()["usage"]["prompt_tokens"])

    assert count("x<|im_end|>") - count("x") > 1
    assert count("x<filename>") - count("x") > 1


def test_an_explicit_system_message_replaces_the_templates_own(raw: RawClient) -> None:
    usage = raw.chat(max_tokens=1).json()["usage"]
    empty = [{"role": "system", "content": ""}, *HI]
    without = raw.chat(messages=empty, max_tokens=1).json()["usage"]
    assert without["prompt_tokens"] < usage["prompt_tokens"]


def test_more_prompts_than_slots_are_answered_in_order(raw: RawClient) -> None:
    answer = raw.post(
        "/v1/completions", model=CHAT_MODEL, prompt=list("abcdefgh"), n=2, max_tokens=2
    )
    assert [choice["index"] for choice in answer.json()["choices"]] == list(range(16))


@pytest.mark.slow
def test_a_budget_beyond_the_context_ends_at_the_context(raw: RawClient) -> None:
    n_ctx = raw.send("GET", "/props").json()["default_generation_settings"]["n_ctx"]
    body = {"model": CHAT_MODEL, "prompt": [1000] * (n_ctx - 20), "ignore_eos": True}
    document = raw.post("/v1/completions", **body, max_tokens=100).json()
    assert document["choices"][0]["finish_reason"] == "length"
    assert document["usage"]["completion_tokens"] == 20
    assert document["usage"]["total_tokens"] <= n_ctx


def test_json_mode_gives_json(raw: RawClient) -> None:
    answer = raw.chat(response_format={"type": "json_object"}, max_tokens=60, temperature=0)
    choice = answer.json()["choices"][0]
    if choice["finish_reason"] == "stop":
        assert isinstance(json.loads(choice["message"]["content"]), dict)
    assert choice["message"]["content"].startswith("{")


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "age": {"type": "integer", "minimum": 1, "maximum": 120},
        "pets": {"type": "array", "items": {"enum": ["cat", "dog"]}, "maxItems": 2},
    },
    "required": ["name", "age", "pets"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_an_answer_under_a_schema_is_valid(raw: RawClient, temperature: float) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "p", "strict": True, "schema": PERSON}}
    answer = raw.chat(response_format=schema, max_tokens=100, temperature=temperature, seed=1)
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    jsonschema.validate(json.loads(choice["message"]["content"]), PERSON)
    native = raw.complete("A person: ", json_schema=PERSON, n_predict=100, temperature=temperature)
    jsonschema.validate(json.loads(native["content"]), PERSON)


def test_a_long_string_within_a_schema_is_served(raw: RawClient) -> None:
    schema = {"properties": {"s": {"type": "string", "maxLength": 2000}}, "required": ["s"]}
    choice = raw.complete("Give JSON: ", json_schema=schema, n_predict=20)
    assert choice["content"].startswith("{")
