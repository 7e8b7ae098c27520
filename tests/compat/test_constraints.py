"""Grammars, schemas, patterns and choices on a real model, through the whole product."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

from tests.compat.conftest import RawClient

pytestmark = pytest.mark.model

SCHEMAS: list[Any] = [
    {},
    {"type": "object"},
    {"type": "object", "properties": {}},
    {"type": "array", "items": {"type": "integer", "minimum": -5, "maximum": 99}, "maxItems": 4},
    {"enum": ["red", 5, None, {"a": [1, "é"]}]},
    {"const": "😀 漢字"},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
    {"type": "string", "format": "date-time"},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "left": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/tree"}]},
                },
                "required": ["value", "left"],
                "additionalProperties": False,
            }
        },
    },
    {
        "oneOf": [
            {"properties": {"kind": {"const": kind}, "size": {"type": kind}}, "required": ["kind"]}
            for kind in ("integer", "boolean")
        ],
        "type": "object",
    },
    {
        "allOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"enum": [True, "x"]}}, "required": ["b"]},
        ],
        "type": "object",
    },
    {
        "anyOf": [
            {
                "properties": {"id": {"type": "integer"}, "kind": {"const": f"kind_{number}"}},
                "required": ["id", "kind"],
            }
            for number in range(40)
        ],
    },
    {
        "properties": {
            "size": {"type": "number", "multipleOf": 0.25, "minimum": 0},
            "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
        },
        "required": ["size", "tags"],
        "if": {"properties": {"size": {"minimum": 9}}},
        "then": {"properties": {"tags": {"minItems": 2}}},
    },
]


@pytest.fixture(scope="module")
def answers(raw: RawClient) -> dict[int, list[dict[str, Any]]]:
    """What comes back for each schema, greedy and at random; all are asked for together."""

    def ask(number: int, temperature: float) -> dict[str, Any]:
        wish = {"n_predict": 80, "temperature": temperature, "seed": number}
        return raw.complete("Some JSON: ", json_schema=SCHEMAS[number], **wish)

    with ThreadPoolExecutor(8) as pool:
        asked = {
            number: [pool.submit(ask, number, temperature) for temperature in (0, 1.5)]
            for number in range(len(SCHEMAS))
        }
        return {number: [one.result() for one in both] for number, both in asked.items()}


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_what_ends_by_itself_is_valid(
    answers: dict[int, list[dict[str, Any]]], number: int
) -> None:
    schema = SCHEMAS[number]
    for answer in answers[number]:
        if answer["stop_type"] == "eos":
            jsonschema.validate(json.loads(answer["content"]), schema)
        else:
            assert answer["stop_type"] == "limit"


def test_a_pattern_is_matched_as_a_whole(raw: RawClient) -> None:
    pattern = r"(?:\+\d{1,2} )?\(\d{3}\) \d{3}-\d{4}"
    for temperature in (0, 1.5):
        answer = raw.chat(guided_regex=pattern, max_tokens=40, temperature=temperature, seed=4)
        choice = answer.json()["choices"][0]
        assert choice["finish_reason"] == "stop"
        assert re.fullmatch(pattern, choice["message"]["content"])


def test_one_of_the_choices_comes_back(raw: RawClient) -> None:
    choices = ["positive", "negative", "neutral", "🙂", "posit"]
    answer = raw.chat(structured_outputs={"choice": choices}, n=4, temperature=2, seed=1)
    found = [choice["message"]["content"] for choice in answer.json()["choices"]]
    assert set(found) <= set(choices)
    assert {choice["finish_reason"] for choice in answer.json()["choices"]} == {"stop"}


def test_json_mode_never_goes_on_with_blanks(raw: RawClient) -> None:
    answer = raw.chat(
        response_format={"type": "json_object"}, temperature=1.0, max_tokens=60, seed=0, n=3
    )
    for choice in answer.json()["choices"]:
        content = choice["message"]["content"]
        outside = re.sub(r'"(?:[^"\\]|\\.)*"?', '""', content)
        assert not re.search(r"\s{3}", outside)


def test_a_grammar_that_is_done_ends_with_eos_ignored(raw: RawClient) -> None:
    answer = raw.complete("x", grammar='root ::= "done"', ignore_eos=True, n_predict=20)
    assert (answer["content"], answer["stop_type"]) == ("done", "eos")


def test_a_ban_of_all_that_the_grammar_permits_is_400(raw: RawClient) -> None:
    token = raw.post("/tokenize", content="7").json()["tokens"][0]
    body = {"prompt": "x", "grammar": 'root ::= "7"', "logit_bias": [[token, False]]}
    answer = raw.post("/completion", **body, n_predict=4)
    assert answer.status == 400
    assert "permits none" in answer.error["message"]


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "a" root "b" | "a" root "c" | "a"{60} "z"',
        "root ::= " + "(" * 20 + '"a"?' + "){0,9}" * 20,
        "".join(f'r{i} ::= r{i + 1} "x" | r{i + 1} "y"\n' for i in range(40))
        + 'r40 ::= "z"\nroot ::= r0',
    ],
)
def test_an_exploding_grammar_is_400_and_harms_nobody(raw: RawClient, grammar: str) -> None:
    answer = raw.post(
        "/completion", prompt="a" * 50, guided_grammar=grammar, n_predict=64, ignore_eos=True
    )
    assert (answer.status, answer.error["param"]) == (400, "guided_grammar")
    assert raw.complete("x", n_predict=1)["tokens_predicted"] == 1


def test_a_lazy_grammar_wakes_at_its_trigger(raw: RawClient) -> None:
    body = {
        "prompt": "Count: one, two, three, four,",
        "n_predict": 16,
        "temperature": 0,
        "grammar": 'root ::= "," "[" [0-9]+ "]"',
        "grammar_lazy": True,
    }
    asleep = raw.complete(**body, grammar_triggers=[{"type": 1, "value": "never comes"}])
    assert (
        asleep["content"]
        == raw.complete(**body | {"grammar_lazy": False, "grammar": ""})["content"]
    )
    awake = raw.complete(**body, grammar_triggers=[{"type": "word", "value": ","}])
    free, comma, rest = awake["content"].partition(",")
    assert asleep["content"].startswith(free)
    assert comma
    assert re.fullmatch(r"\[[0-9]+\]?", rest)


def test_a_preserved_control_token_is_told_as_text(raw: RawClient) -> None:
    grammar = 'root ::= <|im_start|> "x"'
    plain = raw.complete("x", grammar=grammar, n_predict=8)
    assert plain["content"] == "x"
    body = {"grammar": 'root ::= "<|im_start|>" "x"', "preserved_tokens": ["<|im_start|>"]}
    told = raw.complete("x", **body, n_predict=8, logit_bias=[[1, 100]], return_tokens=True)
    assert told["content"] == "<|im_start|>x"
    assert told["tokens"][0] == 1
