"""Unions of many objects that begin alike: written so that few places are followed at once."""

import json
from random import Random
from typing import Any

import jsonschema
import pytest

from inference.text.grammar import Budget
from inference.text.json_schema import schema_to_grammar
from tests.inference.text.json_schema.grammar_walk import (
    accepts,
    open_automaton,
    write_at_random,
)

KINDS = [f"kind_{number}" for number in range(30)]
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def closed(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """Describe objects of these properties alone, all of them required unless said otherwise."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


FIRST = [closed(kind={"const": kind}, id=TEXT, x=NUMBER) for kind in KINDS]
LAST = [closed(id=TEXT, x=NUMBER, kind={"const": kind}) for kind in KINDS]
UNIONS: dict[str, Any] = {
    "told apart first": {"oneOf": FIRST},
    "told apart last": {"oneOf": LAST},
    "told apart by names": {"anyOf": [closed(id=TEXT, **{kind: NUMBER}) for kind in KINDS]},
    "with parts of their own": {
        "anyOf": [
            closed(id=TEXT, part=closed(**{f"{kind}_x": TEXT}), kind={"const": kind})
            for kind in KINDS
        ]
    },
    "optional properties": {
        "anyOf": [closed(["kind"], id=TEXT, note=TEXT, kind={"const": kind}) for kind in KINDS]
    },
    "lists of references that lead back": {
        "$defs": {
            kind: closed(
                ["kind"],
                id=TEXT,
                kind={"const": kind},
                below={"oneOf": [{"$ref": f"#/$defs/{other}"} for other in KINDS]},
            )
            for kind in KINDS
        },
        "type": "array",
        "items": {"anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in KINDS]},
    },
    "calls of tools": {
        "anyOf": [
            closed(name={"const": kind}, arguments=closed(**{f"{kind}_x": TEXT, "y": NUMBER}))
            for kind in KINDS
        ]
    },
}


@pytest.mark.parametrize("name", UNIONS)
def test_few_places_are_followed_at_once(name: str) -> None:
    grammar = schema_to_grammar(UNIONS[name], param="x")
    automaton, random = open_automaton(grammar), Random(1)
    for _ in range(5):
        text = write_at_random(grammar, random)
        if text is None:
            continue
        state = automaton.start(Budget(1000))
        for byte in text.encode():
            state = automaton.walk(state, bytes([byte]), Budget(1000))
            assert len(state.threads) <= 100


@pytest.mark.parametrize("name", UNIONS)
def test_what_is_written_is_valid(name: str) -> None:
    schema = UNIONS[name]
    grammar, random = schema_to_grammar(schema, param="x"), Random(2)
    validator = jsonschema.Draft202012Validator(schema)
    texts = [write_at_random(grammar, random) for _ in range(5)]
    assert any(texts)
    for text in filter(None, texts):
        validator.validate(json.loads(text))


def test_each_alternative_can_be_written() -> None:
    grammar = schema_to_grammar(UNIONS["told apart last"], param="x")
    for kind in KINDS:
        assert accepts(grammar, f'{{"id":"a","x":1,"kind":"{kind}"}}')
    assert not accepts(grammar, '{"id":"a","x":1,"kind":"kind_30"}')
    assert not accepts(grammar, '{"kind":"kind_1","id":"a","x":1}')


def test_alternatives_in_different_orders_and_counted() -> None:
    grammar = schema_to_grammar(
        {
            "anyOf": [
                closed([], a=NUMBER, b=NUMBER, c=NUMBER) | {"minProperties": 2},
                closed(["c"], c=NUMBER, a=TEXT),
                {"properties": {"b": NUMBER}, "additionalProperties": TEXT, "maxProperties": 2},
            ]
        },
        param="x",
    )
    good = [
        *('{"a":1,"c":1}', '{"c":1,"a":"x"}', '{"b":1,"c":"x"}', '{"z":"x","z":"y"}', "{}"),
        '{"b":1}',
    ]
    bad = ['{"a":1}', '{"a":"x","c":1}', '{"b":1,"c":"x","d":"y"}', '{"c":1,"b":1}']
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []
