"""Requests that servers of this kind got wrong, against the whole product."""

import json
from typing import Any

import jsonschema
import pytest

from tests.compat.conftest import HI, RawClient
from tests.live import CHAT_MODEL, EMBEDDING_MODEL

pytestmark = pytest.mark.model


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/completions", {"prompt": [-1]}, "prompt"),
        ("/v1/completions", {"prompt": [49152]}, "prompt"),
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


def test_bytes_that_are_no_text_come_as_replacement_characters(raw: RawClient) -> None:
    body = {"model": CHAT_MODEL, "prompt": "x", "max_tokens": 5, "temperature": 0}
    answer = raw.post("/v1/completions", **body, logit_bias={"218": 100})
    assert answer.json()["choices"][0]["text"] == "\ufffd" * 5


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


@pytest.mark.parametrize("num", [1, 3, 6])
def test_a_limit_inside_a_character_drops_its_part(raw: RawClient, num: int) -> None:
    text = "🧑‍🚀🧑‍🚀🧑‍🚀"
    document = raw.complete("x", grammar=f'root ::= "{text}"', n_predict=num)
    assert document["tokens_predicted"] == num
    assert text.startswith(document["content"])
