"""What the grammar of a schema lets through, judged by a validator."""

import json
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import jsonschema
import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.text.json_schema import schema_to_grammar
from tests.inference.text.json_schema.grammar_walk import accepts, write_at_random
from tests.inference.text.json_schema.made_schemas import make_schema

NUM_SCHEMAS = 400
CHECKER = jsonschema.FormatChecker(("date", "uuid", "ipv4", "ipv6", "email"))


def exact_multiple(
    _validator: Any, step: float, value: Any, _schema: Any
) -> Iterator[jsonschema.ValidationError]:
    """Judge decimals as they are written: 0.07 is a multiple of 0.01, but not as doubles."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and Fraction(str(value)) % Fraction(str(step)):
        yield jsonschema.ValidationError(f"{value} is no multiple of {step}")


VALIDATOR = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {"multipleOf": exact_multiple}
)


def test_every_text_of_a_made_schema_is_valid() -> None:
    num_refused = num_written = 0
    for number in range(NUM_SCHEMAS):
        schema = make_schema(Random(number))
        try:
            grammar = schema_to_grammar(schema, param="response_format")
        except EngineError as error:
            assert error.code is ErrorCode.INVALID_GRAMMAR
            num_refused += 1
            continue
        validator = VALIDATOR(schema, format_checker=CHECKER)
        random = Random(number)
        for _ in range(2):
            text = write_at_random(grammar, random)
            if text is not None:
                num_written += 1
                validator.validate(json.loads(text))
    assert num_refused < NUM_SCHEMAS // 3
    assert num_written > NUM_SCHEMAS * 1.2


NODE = {
    "type": "object",
    "properties": {"next": {"$ref": "#"}, "tag": {"$ref": "#/$defs/tag"}},
    "required": ["tag"],
    "$defs": {"tag": {"enum": ["on", "off", None, 1.5]}},
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "é": {"type": "null"}},
    "required": ["age"],
}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({}, ['{"a": [1, "x"]}', "-1.5e3", "null", '"\\ud7ff"'], ["", "01", '{"a": 1,}']),
        ({"type": "string"}, ['"\\u00e9é🙂"', '""'], ['"\\ud800"', '"\n"', "'a'", "a"]),
        ({"type": "object"}, ["{}", '{"a":{"b":[]}}'], ["[]", "{ \n}", '{"a":  1}']),
        (
            PERSON,
            ['{"name": "x", "age": 1}', '{"age":0,"é":null}'],
            ['{"name":"x"}', '{"age":"1"}'],
        ),
        (
            NODE,
            ['{"next":{"tag":"off"},"tag":"on"}', '{"tag":1.5}'],
            ['{"tag":"o"}', '{"next":null}'],
        ),
        (
            {"properties": {"ab": {"const": 1}}, "additionalProperties": {"type": "boolean"}},
            ['{"a":true}', '{"ab":1,"abc":false}', '{"":true}', '{"b":true,"b":false}'],
            ['{"ab":true}', '{"b":true,"ab":false}', '{"a":1}'],
        ),
        (
            {"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2},
            ["[1,2]", "[1, 2,2]"],
            ["[1]", "[2,2]", "[1,2,3]"],
        ),
        ({"type": "array", "items": {"const": 0}, "maxItems": 2}, ["[]", "[0,0]"], ["[0,0,0]"]),
        (
            {"type": "string", "minLength": 2, "maxLength": 3},
            ['"é🙂"', '"\\n\\u0041b"'],
            ['"a"', '"abcd"'],
        ),
        (
            {"type": "string", "pattern": r'^[^a]"\d{2}(\\|é+)\.?$'},
            ['"b\\"12\\\\"', '"🙂\\"00éé."'],
            ['"a\\"12é"', '"b\\"1é"', '"b\\"12"'],
        ),
        ({"type": "string", "pattern": "b|^c"}, ['"abc"', '"ca"'], ['"ac"', '""']),
        (
            {"type": "string", "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$", "maxLength": 6},
            ['"a"', '"a-b-c"', '"abc-9"'],
            ['""', '"abcdefg"', '"a-b-c-"', '"-a"', '"a--b"'],
        ),
        (
            {"type": "string", "pattern": "^(a|bc)+$", "minLength": 4},
            ['"bcbc"', '"aaaaa"', '"abcabcabc"'],
            ['"bca"', '"a"', '"bcb"', '"bcbcb"'],
        ),
        (
            {"type": "string", "pattern": '"', "maxLength": 2},
            ['"\\""', '"a\\""', '"\\"a"'],
            ['"ab"', '"ab\\""', '""'],
        ),
        (
            {"type": "string", "format": "date", "pattern": "^202.-0[12]"},
            ['"2024-02-29"'],
            ['"2023-02-29"', '"2024-03-01"'],
        ),
        (
            {"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083},
            ['"https://a.b/c/d?e=%20#f"'],
            ['"https://a.b/' + "c" * 2083 + '"', '"a"'],
        ),
        (
            {"enum": ["ab", "b", "2024-01-01", 5], "pattern": "^[a2]", "format": "note"},
            ['"ab"', '"2024-01-01"', "5"],
            ['"b"'],
        ),
        ({"enum": ["x", "2024-01-01"], "format": "date"}, ['"2024-01-01"'], ['"x"']),
        (
            {"type": "string", "pattern": r"^[\s\S]{2}$"},
            ['"é\\n"', '"  "', '"漢a"'],
            ['"a"', '"abc"'],
        ),
        ({"type": "string", "pattern": r"^\S+[^\s]$"}, ['"漢é"'], ['"é é"', '"\u3000é"']),
        (
            {"type": "string", "minLength": 2003, "maxLength": 4005},
            ['"' + "é" * length + '"' for length in (2003, 2004, 4000, 4005)],
            ['"' + "é" * length + '"' for length in (0, 1999, 2002, 4006)],
        ),
        (
            {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
            ['"a"', '"abc"'],
            ['""', '"abcd"'],
        ),
        ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"', '"2024-13-01"']),
        (
            {"type": "string", "format": "date-time"},
            ['"2024-04-30T23:59:59.5Z"', '"2024-04-30T00:00:00+02:00"'],
            ['"2024-04-31T00:00:00Z"', '"2024-04-30T24:00:00Z"', '"2024-04-30T00:00:00"'],
        ),
        ({"type": "string", "format": "ipv4"}, ['"0.10.255.1"'], ['"256.1.1.1"', '"01.1.1.1"']),
        (
            {"type": "string", "format": "uuid"},
            ['"123e4567-e89b-12d3-a456-426614174000"'],
            ['"123e4567e89b12d3a456426614174000"'],
        ),
        ({"type": "string", "format": "color"}, ['"red"'], ["1"]),
        ({"type": ["integer", "null"]}, ["0", "-12", "null"], ["1.5", '"1"']),
        ({"type": "integer", "nullable": True}, ["0", "null"], ["false"]),
        ({"enum": ["a", 1], "type": "integer"}, ["1"], ['"a"']),
        (
            {"oneOf": [{"type": "integer", "maximum": -1}, {"type": "string", "maxLength": 0}]},
            ["-1", '""'],
            ["0", '"a"'],
        ),
        (
            {
                "allOf": [PERSON, {"properties": {"age": {"minimum": 18}}, "required": ["name"]}],
                "properties": {"extra": {"type": "boolean"}},
            },
            ['{"extra":true,"name":"x","age":18}', '{"name":"x","age":99}'],
            ['{"name":"x","age":17}', '{"age":18}'],
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": {}}, "additionalProperties": False},
                    PERSON | {"required": []},
                ]
            },
            ['{"a":1}', "{}"],
            ['{"age":1}'],
        ),
        (
            {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}},
            ["{}", '{"x-a":1,"x-":2}'],
            ['{"a":1}', '{"x-a":"1"}', '{"x-a":1,"b":2}'],
        ),
        (
            {
                "properties": {"x-a": {"minimum": 5}, "b": {"type": "null"}},
                "patternProperties": {"^x-": {"type": "integer"}},
                "required": ["x-a"],
                "additionalProperties": False,
            },
            ['{"x-a":5,"b":null}'],
            ['{"x-a":4}', '{"x-a":5.5}', '{"x-a":5,"x-b":1}'],
        ),
        ({"type": "string", "format": "ipv6"}, ['"::1"', '"1:2::8"'], ['"1::2::3"', '"1:2"']),
        (
            {"type": "string", "format": "email"},
            ['"a.b@c-d.example.org"'],
            ['"a@b"', '"@c.de"', '"a b@c.de"'],
        ),
        ({"type": "string", "format": "duration"}, ['"P1Y2M"', '"PT5S"'], ['"P"', '"P1S"']),
        ({"type": "string", "format": "uri"}, ['"https://a.b/c?d#e"'], ['"a.b"', '"http://"']),
        ({"type": "string", "pattern": "^(a*|b?)*c+?$"}, ['"aabac"', '"c"'], ['"ab"']),
        ({"type": "object", "properties": {"a": False, "b": True}}, ['{"b":1}', "{}"], ['{"a":1}']),
        ({"type": "string", "not": {"enum": ["a", "ab", 5]}}, ['"b"', '"abc"', '""'], ['"a"']),
        ({"enum": [1, 2, 3], "not": {"const": 2.0}}, ["1", "3"], ["2"]),
        ({"type": "integer", "not": {"enum": [0, 7]}, "minimum": 0}, ["1", "8"], ["0", "7"]),
        ({"type": ["boolean", "null"], "not": {"const": True}}, ["false", "null"], ["true"]),
        ({"not": {"type": ["object", "array", "string"]}}, ["1", "null"], ["{}", '""']),
        (
            {"properties": {"a": {}, "b": {}}, "not": {"required": ["a", "b"]}},
            ["{}", '{"a":1}', '{"b":1}'],
            ['{"a":1,"b":1}'],
        ),
        ({"type": "array", "not": {"const": []}}, ["[1]"], ["[]"]),
        (
            {
                "properties": {"kind": {"enum": ["a", "b"]}, "x": {"type": "integer"}},
                "required": ["kind"],
                "if": {"properties": {"kind": {"const": "a"}}},
                "then": {"required": ["x"]},
                "else": {"properties": {"x": {"minimum": 5}}},
            },
            ['{"kind":"a","x":1}', '{"kind":"b"}', '{"kind":"b","x":5}'],
            ['{"kind":"a"}', '{"kind":"b","x":4}', '{"x":5}'],
        ),
        (
            {
                "properties": {"a": {}, "b": {}, "c": {"type": "integer"}},
                "dependentRequired": {"a": ["b"]},
                "dependentSchemas": {"b": {"properties": {"c": {"minimum": 9}}}},
            },
            ["{}", '{"a":1,"b":1}', '{"c":1}', '{"b":1,"c":9}'],
            ['{"a":1}', '{"a":1,"c":9}', '{"b":1,"c":1}'],
        ),
        (
            {"properties": {"a": {}, "b": {}}, "dependencies": {"a": ["b"]}},
            ['{"a":1,"b":1}', '{"b":1}'],
            ['{"a":1}'],
        ),
        (
            {
                "type": "object",
                "propertyNames": {"enum": ["x", "y"]},
                "additionalProperties": {"type": "integer"},
            },
            ["{}", '{"x":1}', '{"x":1,"y":2}'],
            ['{"z":1}', '{"x":"1"}', '{"x":1,"x":2}'],
        ),
        (
            {"type": "object", "propertyNames": {"pattern": "^[a-z]+$", "maxLength": 3}},
            ['{"abc":[]}', "{}"],
            ['{"abcd":1}', '{"A":1}'],
        ),
        (
            {"properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 1, "maxProperties": 2},
            ['{"b":1}', '{"a":1,"c":1}', '{"b":1,"c":1}'],
            ["{}", '{"a":1,"b":1,"c":1}'],
        ),
        (
            {
                "allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}],
                "type": "object",
                "unevaluatedProperties": False,
            },
            ['{"a":1,"b":1}'],
            ['{"c":1}'],
        ),
        (
            {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
            ["[]", '["c","a","b"]'],
            ['["a","a"]', '["a","b","a"]'],
        ),
        (
            {
                "type": "array",
                "items": {"enum": [1, 1.0, True, {"a": 1, "b": 2}, {"b": 2, "a": 1}]},
                "uniqueItems": True,
                "minItems": 2.0,
            },
            ['[{"a":1,"b":2},true,1]'],
            ["[1]", "[1,1.0]", '[{"a":1,"b":2},{"b":2,"a":1}]'],
        ),
        (
            {
                "type": "array",
                "items": {"type": "integer", "minimum": 1, "maximum": 40},
                "uniqueItems": True,
                "minItems": 2,
            },
            ["[1,2]", "[7,40]"],
            ["[1]", "[2,2]", "[41,42]"],
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "contains": {"maximum": 0}},
            ["[0]", "[5,-1,7]", "[5,0]"],
            ["[]", "[5]", "[5,6]"],
        ),
        (
            {
                "type": "array",
                "items": {"enum": ["a", "b"]},
                "contains": {"const": "a"},
                "minContains": 0,
                "maxContains": 1,
                "minItems": 1,
                "maxItems": 3,
            },
            ['["b"]', '["b","a","b"]'],
            ["[]", '["a","a"]', '["b","a","b","b"]'],
        ),
        ({"type": "integer", "multipleOf": 7}, ["0", "-7", "7000000"], ["1", "8"]),
        ({"type": "integer", "multipleOf": 1000, "minimum": 1}, ["1000", "25000"], ["0", "10"]),
        ({"type": "integer", "multipleOf": 0.5, "maximum": 2}, ["-1", "2"], ["0.5", "3"]),
        (
            {"type": "number", "multipleOf": 0.25, "exclusiveMinimum": 0},
            ["0.25", "12", "7.5", "7.50"],
            ["0", "0.3", "-0.25", "0.255"],
        ),
        (
            {"type": "number", "multipleOf": 0.01, "minimum": -1, "maximum": 1000000},
            ["-0.99", "999.5", "0.07", "1000000"],
            ["-1.01", "0.001", "1000000.01"],
        ),
        (
            {
                "type": "object",
                "properties": {"k": {"enum": [f"k{i}" for i in range(30)]}},
                "required": ["k"],
                "allOf": [
                    {
                        "if": {"properties": {"k": {"const": f"k{i}"}}},
                        "then": {"properties": {f"b{i}": {}}, "required": [f"b{i}"]},
                    }
                    for i in range(29)
                ],
            },
            ['{"k":"k7","b7":1}', '{"k":"k29"}'],
            ['{"k":"k7"}', '{"k":"k7","b8":1}'],
        ),
        (
            {"type": "array", "items": [{"const": 1}], "additionalItems": {"const": 2}},
            ["[1]", "[1,2,2]"],
            ["[2]", "[1,1]"],
        ),
    ],
)
def test_what_a_grammar_lets_through(schema: Any, good: list[str], bad: list[str]) -> None:
    grammar = schema_to_grammar(schema, param="json_schema")
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []


@pytest.mark.parametrize("low", [-12, -1, 0, 7, 95])
@pytest.mark.parametrize("size", [0, 3, 13, 110])
def test_integers_between_bounds_are_exactly_those(low: int, size: int) -> None:
    grammar = schema_to_grammar(
        {"type": "integer", "minimum": low, "exclusiveMaximum": low + size + 0.5}, param="x"
    )
    around = range(low - 3, low + size + 4)
    found = [number for number in around if accepts(grammar, str(number))]
    assert found == list(range(low, low + size + 1))


@pytest.mark.parametrize(
    ("bounds", "good", "bad"),
    [
        ({"minimum": 0}, ["0", "0.05", "12.5", "1000000"], ["-1", "-0.1"]),
        ({"exclusiveMinimum": 0}, ["0.05", "3"], ["0", "0.0", "-1"]),
        ({"maximum": -1.5}, ["-1.5", "-1.75", "-20"], ["-1.4", "0", "1.5"]),
        ({"minimum": 0.25, "maximum": 0.5}, ["0.25", "0.259", "0.50"], ["0.24", "0.51", "0.5001"]),
        (
            {"exclusiveMinimum": -1, "exclusiveMaximum": 1},
            ["-0.9", "0", "0.99"],
            ["-1", "1", "1.0"],
        ),
        ({"minimum": 3, "maximum": 3}, ["3", "3.0"], ["3.1", "2"]),
        ({"minimum": -1.7e308, "maximum": 1.7e308}, ["-3.5", "9999999999999999"], ["1e9", "x"]),
        ({"minimum": -1e300, "exclusiveMaximum": 2}, ["-3.5", "1.9"], ["2", "1e0"]),
        ({"type": "integer", "minimum": 2, "maximum": 1e300}, ["2", "30"], ["1", "2.5"]),
    ],
)
def test_numbers_between_bounds(bounds: Any, good: list[str], bad: list[str]) -> None:
    grammar = schema_to_grammar({"type": "number"} | bounds, param="x")
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []
