"""``oneOf`` is kept exactly, or refused: a value may never fit two of its alternatives."""

from typing import Any

import pytest

from inference.protocol.errors import EngineError
from inference.text.json_schema import schema_to_grammar


def with_all(**properties: Any) -> dict[str, Any]:
    """Describe objects that have all these properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


APART = [
    [{"type": "string"}, {"type": "integer"}, {"type": "null"}],
    [{"type": "integer", "maximum": 3}, {"type": "number", "exclusiveMinimum": 3}],
    [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}],
    [{"type": "array", "maxItems": 1}, {"type": "array", "minItems": 2}],
    [{"enum": ["a", 1]}, {"const": "b"}, {"type": "integer", "minimum": 2}],
    [{"const": "a"}, {"type": "string", "not": {"const": "a"}}],
    [with_all(a={}), with_all(b={})],
    [with_all(kind={"const": "a"}, x={}), with_all(kind={"enum": ["b", "c"]}, x={})],
    [with_all(of={"$ref": "#/$defs/a"}), with_all(of={"$ref": "#/$defs/b"})],
    [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
    [with_all(a={}) | {"additionalProperties": False}, with_all(a={}, b={})],
]
DEFINITIONS = {"a": with_all(t={"const": "a"}), "b": with_all(t={"const": "b"})}


@pytest.mark.parametrize("options", APART)
def test_alternatives_that_exclude_each_other_are_taken(options: list[Any]) -> None:
    schema_to_grammar({"oneOf": options, "$defs": DEFINITIONS}, param="x")
    inner = {"type": "array", "items": {"oneOf": options, "title": "x"}, "$defs": DEFINITIONS}
    schema_to_grammar(inner, param="x")


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"type": "number"}, {"type": "integer"}]},
        {"oneOf": [{"type": "integer", "maximum": 4}, {"type": "integer", "minimum": 4}]},
        {"oneOf": [{"const": 1}, {"const": 1.0}]},
        {"oneOf": [{"minLength": 3}, {"type": "integer"}]},
        {"oneOf": [{"type": "string"}, {"pattern": "^a"}]},
        {"oneOf": [{}, {"type": "string"}]},
        {"oneOf": [with_all(x={}), with_all(x={}, y={})]},
        {"oneOf": [with_all(a={}) | {"additionalProperties": True}, with_all(b={})]},
        {"oneOf": [with_all(a={}) | {"additionalProperties": {}}, with_all(b={})]},
        {"oneOf": [with_all(t={"enum": ["a", "b"]}), with_all(t={"const": "b"})]},
        {
            "properties": {"a": {}, "b": {}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        {
            "allOf": [
                {"oneOf": [with_all(a={}), with_all(b={})]},
                {"type": "object", "properties": {"a": {}, "b": {}}},
            ]
        },
    ],
)
def test_alternatives_that_may_overlap_are_refused(schema: Any) -> None:
    with pytest.raises(EngineError, match="fit both"):
        schema_to_grammar(schema, param="x")


@pytest.mark.parametrize(
    "hidden",
    [
        {"not": {"type": "integer"}},
        {"if": {"type": "integer"}, "then": {"minimum": 5}},
        {
            "type": "object",
            "anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}],
            "unevaluatedProperties": False,
        },
        with_all(a={"not": {"type": ["integer", "string"]}}),
    ],
)
def test_alternatives_of_which_not_all_values_are_known_are_refused(hidden: Any) -> None:
    other = {
        "type": ["number", "object"],
        "properties": {"a": {"type": "number"}, "b": {}},
        "required": ["a", "b"],
    }
    with pytest.raises(EngineError, match="'#/oneOf'"):
        schema_to_grammar({"oneOf": [other, hidden, {"const": "x"}]}, param="x")


def test_clients_cannot_speak_the_converters_own_word() -> None:
    schema = {"type": "string", "$apart": [{"type": "string"}]}
    assert schema_to_grammar(schema, param="x") == schema_to_grammar({"type": "string"}, param="x")
