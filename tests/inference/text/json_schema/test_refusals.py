"""What cannot become a grammar is refused at its place, soon, and never let through."""

import math
from typing import Any

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.grammar import read_grammar
from inference.text.json_schema import schema_to_grammar

ENDLESS = {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}


def refusal_of(schema: Any) -> EngineError:
    with pytest.raises(EngineError) as caught:
        schema_to_grammar(schema, param="response_format")
    return caught.value


def in_property(schema: Any) -> Any:
    return {"type": "object", "properties": {"a/b": schema}}


def nested(depth: int) -> Any:
    schema: Any = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def test_a_refusal_names_place_and_param() -> None:
    error = refusal_of(in_property({"type": "string", "pattern": "(?<=x)+"}))
    assert (error.code, error.param) == (ErrorCode.INVALID_GRAMMAR, "response_format")
    assert "'#/properties/a~1b/pattern'" in error.message


@pytest.mark.parametrize(
    "pattern",
    [
        "^+a$",
        "(?<=x)+",
        "(?=x)",
        "(?!x)",
        "(" * 10_000,
        "(" * 30 + ")" * 30,
        "(a",
        "a)",
        "[a",
        "[]",
        "[z-a]",
        "[\\d-z]",
        "a**",
        "(^a)",
        "a^",
        "a$b",
        "\\bword",
        "(a)\\1",
        "\\p{L}",
        "\\ud800",
        "\\",
        "a{2,1}",
        "a{5000}",
        "a{x}",
        "a{",
        "x{2",
        "((a{100}){100})",
        "([a-z]{1,100}-){90}",
    ],
)
def test_patterns_beyond_the_subset_are_refused(pattern: str) -> None:
    assert "/pattern'" in refusal_of(in_property({"pattern": pattern})).message


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "patternProperties": []}, "#/patternProperties"),
        ({"type": "object", "patternProperties": {"(?=a)": {}}}, "#/patternProperties"),
        ({"type": "object", "patternProperties": {"a": {}, "b": {}}}, "several patterns"),
        ({"type": "string", "format": "regex"}, "#/format"),
        ({"not": {}}, "no value"),
        ({"not": {"pattern": "a"}}, "#/not/pattern"),
        ({"type": "string", "not": {"multipleOf": 2}}, "#/not/multipleOf"),
        ({"type": "string", "minLength": 1, "not": {"const": "a"}}, "#/not"),
        ({"type": "array", "not": {"const": [1]}}, "#/not"),
        ({"type": "integer", "not": {"enum": list(range(200))}}, "#/not"),
        ({"if": {"pattern": "a"}, "then": {"type": "string"}}, "#/if/pattern"),
        ({"if": 5, "then": {}}, "#/if"),
        ({"type": "object", "propertyNames": {"format": "date"}}, "#/propertyNames/format"),
        ({"type": "object", "propertyNames": 5}, "#/propertyNames"),
        ({"type": "object", "dependentRequired": []}, "#/dependentRequired"),
        ({"type": "object", "dependentRequired": {"a": "b"}}, "#/dependentRequired/a"),
        ({"dependentSchemas": {"a": 5}}, "#/dependentSchemas/a"),
        ({"type": "object", "dependencies": 5}, "#/dependencies"),
        (
            {"if": {"required": ["a"]}, "then": {}, "unevaluatedProperties": False},
            "#/unevaluatedProperties",
        ),
        ({"type": "number", "multipleOf": 0}, "#/multipleOf"),
        ({"type": "number", "multipleOf": "2"}, "#/multipleOf"),
        ({"type": "number", "multipleOf": 1e-9}, "#/multipleOf"),
        ({"type": "number", "multipleOf": 1e308}, "#/multipleOf"),
        ({"type": "number", "multipleOf": 7, "allOf": [{"multipleOf": 1e-320}]}, "#/multipleOf"),
        ({"enum": [10**300 + 1, 0.5], "multipleOf": 0.3}, "enum"),
        (
            {"type": "array", "uniqueItems": True, "items": {"enum": list(range(2000))}},
            "#/uniqueItems",
        ),
        ({"type": "integer", "multipleOf": 99_991, "maximum": 10**14}, "#/multipleOf"),
        ({"type": "integer", "multipleOf": 10, "minimum": 1, "maximum": 9}, "no multiple"),
        ({"type": "array", "contains": {}, "maxItems": 2000}, "#/contains"),
        ({"type": "array", "contains": {"type": "null"}, "items": {"type": "string"}}, "contains"),
        ({"type": "array", "uniqueItems": True}, "#/uniqueItems"),
        ({"type": "array", "uniqueItems": 1}, "#/uniqueItems"),
        ({"type": "array", "uniqueItems": True, "items": {"type": "string"}}, "#/uniqueItems"),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "boolean"}, "minItems": 3},
            "#/minItems",
        ),
        ({"type": "array", "maxItems": 100_000}, "#/maxItems"),
        ({"type": "string", "maxLength": 65_537}, "#/maxLength"),
        ({"type": "string", "maxLength": "9"}, "#/maxLength"),
        ({"type": "string", "minLength": True}, "#/minLength"),
        ({"type": "string", "pattern": "^(ab)*$", "minLength": 3, "maxLength": 3}, "no text meets"),
        ({"type": "string", "pattern": "^([^@]{1,9}@)+$", "minLength": 400}, "may break"),
        ({"type": "string", "format": "email", "maxLength": 12}, "may break"),
        ({"type": "string", "format": "date", "pattern": "^x"}, "no text meets"),
        ({"type": "string", "format": "email", "pattern": "^x"}, "too complex together"),
        ({"enum": ["a"], "format": "regex"}, "#/format"),
        ({"enum": ["a"], "format": "date"}, "enum"),
        ({"type": "string", "pattern": 5}, "#/pattern"),
        ({"type": "number", "minimum": 1e-9}, "digits"),
        ({"type": "number", "minimum": "1"}, "#/minimum"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "no integer"),
        ({"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 6}, "no integer"),
        ({"type": "number", "exclusiveMinimum": 5, "maximum": 5}, "no number"),
        ({"type": "number", "exclusiveMinimum": True}, "#/exclusiveMinimum"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "no value"),
        ({"type": "object", "required": True}, "#/required"),
        ({"type": "object", "minProperties": 2}, "#/minProperties"),
        ({"type": "object", "properties": []}, "#/properties"),
        ({"properties": {"a": 5}}, "#/properties/a"),
        ({"properties": {"a": {"$id": "x"}}}, "#/properties/a/$id"),
        ({"enum": []}, "enum"),
        ({"enum": ["a"], "type": "integer"}, "enum"),
        ({"enum": ["a"], "pattern": "b"}, "enum"),
        ({"enum": ["a"], "pattern": "(?=a)"}, "#/pattern"),
        ({"const": {}, "minProperties": 0}, "enum"),
        ({"type": "strin"}, "#/type"),
        ({"type": []}, "#/type"),
        ({"anyOf": []}, "#/anyOf"),
        ({"anyOf": [False]}, "no value"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, "type"),
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "'pattern'"),
        ({"$ref": "#/$defs/none"}, "#/$ref"),
        ({"$ref": "https://example.org/schema"}, "#/$ref"),
        ({"$ref": 5}, "#/$ref"),
        ({"$ref": "#"}, "without end"),
        ({"not": {"$ref": "#"}}, "without end"),
        ({"allOf": [{"$ref": "#"}, {"type": "object"}]}, "without end"),
        ({"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "without end"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}, "without end"),
        ({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "without end"),
        (in_property({"$ref": "#/$defs/a"}) | {"$defs": {"a": ENDLESS}}, "#/$defs/a"),
        ({"minimum": math.inf}, "too large"),
        ({"type": "integer", "maximum": math.nan}, "none of JSON"),
        ({"multipleOf": -math.inf}, "none of JSON"),
        ({"enum": [1, {"a": [math.inf]}]}, "too large"),
        ({"const": 10**5000}, "too large"),
        (False, "no value"),
        (5, "schema"),
        ("object", "schema"),
        (None, "schema"),
        ({"title": "\ud800"}, "Unicode"),
        (nested(5000), "deeper"),
        (nested(100), "deeper"),
        ({"description": "x" * 70_000}, "larger"),
        ({"enum": [f"v{i}" for i in range(10_001)]}, "larger"),
        ({"enum": list(range(10_001))}, "more than 10000"),
    ],
)
def test_what_cannot_be_expressed_is_refused(schema: Any, words: str) -> None:
    error = refusal_of(schema)
    assert error.code is ErrorCode.INVALID_GRAMMAR
    assert words in error.message


def doubling(combine: str) -> Any:
    steps = {
        f"d{i}": {combine: [{"$ref": f"#/$defs/d{i + 1}"}] * 2, "title": "x", "minProperties": 0}
        for i in range(25)
    }
    return {"$ref": "#/$defs/d0", "$defs": steps | {"d25": {"type": "object"}}}


@pytest.mark.parametrize(
    "schema",
    [
        doubling("allOf"),
        doubling("anyOf"),
        {
            "anyOf": [{"properties": {f"a{i}": {}}} for i in range(300)],
            "oneOf": [{"properties": {f"b{i}": {}}} for i in range(300)],
        },
        {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(2500)}},
        {"allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"maxProperties": i}]} for i in range(20)]},
        {
            "allOf": [
                {"if": {"required": [f"a{i}"]}, "then": {"required": [f"b{i}"]}} for i in range(30)
            ]
        },
        {
            "type": "object",
            "properties": {f"n{i}": True for i in range(800)},
            "patternProperties": {f"^x{i}[^a]+": True for i in range(1000)},
        },
    ],
)
def test_what_explodes_is_refused_at_little_cost(schema: Any) -> None:
    assert "complex" in refusal_of(schema).message or "more than" in refusal_of(schema).message


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": list(range(9_000))},
        {"enum": ["a" * i for i in range(300)]},
        {"type": "object", "properties": {f"p{i}": {} for i in range(600)}},
        {
            "type": "object",
            "properties": {f"p{i}": {} for i in range(900)},
            "required": [f"p{i}" for i in range(900)],
        },
        {"type": "object", "properties": {"n" * 5000: {}}, "additionalProperties": True},
        {"type": "string", "maxLength": 2000},
        {"type": "string", "minLength": 4001, "maxLength": 65_536},
        {"type": "object", "maxProperties": 50_000, "minProperties": 1},
        {"type": "array", "minItems": 2000},
        {"type": "string", "pattern": "^[a-z]{0,2000}$"},
        nested(60),
    ],
)
def test_what_is_large_but_within_the_limits_is_a_sound_grammar(schema: Any) -> None:
    read_grammar(schema_to_grammar(schema, param="json_schema"))


def test_words_that_only_describe_are_ignored() -> None:
    notes = {"title": "t", "description": "d", "default": 5, "examples": [1], "x-note": {"not": 1}}
    plain = schema_to_grammar({"type": "integer"}, param="x")
    assert schema_to_grammar({"type": "integer", "$schema": "s", **notes}, param="x") == plain
