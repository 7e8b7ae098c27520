"""Make JSON schemas at random, of everything that is supported."""

import json
from random import Random
from typing import Any

NAMES = ("a", "ab", "abc", "b", 'q"uote', "é", "x y", "", "back\\slash", "number")
_PATTERNS = (
    "^[a-z]{2,5}$",
    "^(foo|ba[rz])+$",
    r"^\d{3}-\d{2,4}$",
    "^a.c$",
    r"^[^\s\"]+\.\w?$",
    "end$",
    "^é|\\\\$",
    "[A-C]",
    r"^(\(\d+\))?x{0,3}$",
)
_FORMATS = (
    "date",
    "time",
    "date-time",
    "duration",
    "uuid",
    "ipv4",
    "ipv6",
    "email",
    "hostname",
    "uri",
    "json-pointer",
    "color",
)
_VALUES: tuple[Any, ...] = (
    "a",
    "ab",
    "é\n",
    'a"',
    0,
    1,
    -2.5,
    10,
    True,
    False,
    None,
    [1, "x"],
    {"a": {}},
)


def make_schema(random: Random) -> dict[str, Any]:
    """Make a schema with definitions that it and they may refer to."""
    maker = _Maker(random)
    schema = maker.make(3)
    if not isinstance(schema, dict):
        schema = {"anyOf": [schema]}
    definitions = {
        "leaf": maker.make(0),
        "list": {
            "type": "object",
            "properties": {
                "a": maker.make(1),
                "next": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]},
            },
            "required": ["next"],
        },
    }
    return schema | {"$defs": definitions}


class _Maker:
    def __init__(self, random: Random) -> None:
        self._random = random

    def make(self, depth: int) -> Any:
        leaves = [self._string, self._string, self._integer, self._number, self._enum, self._other]
        inner = [self._object, self._object, self._array, self._array, self._choice]
        inner += [self._combined, self._conditional, self._excluding, self._mapping]
        make = self._random.choice(inner if depth and self._random.random() < 0.75 else leaves)
        return make(depth - 1)

    def _maybe(self, chance: float = 0.5) -> bool:
        return self._random.random() < chance

    def _other(self, depth: int) -> Any:
        options: list[Any] = [{"type": "boolean"}, {"type": "null"}, {}, True]
        options += [{"type": ["string", "null"], "maxLength": 3}, {"type": ["integer", "boolean"]}]
        if depth >= 0:
            options += [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/list", "title": "x"}]
        return self._random.choice(options)

    def _string(self, _depth: int) -> Any:
        kind = self._random.randrange(4)
        if kind == 0:
            return {"type": "string", "pattern": self._random.choice(_PATTERNS)}
        if kind == 1:
            return {"type": "string", "format": self._random.choice(_FORMATS)}
        schema: dict[str, Any] = {"type": "string"}
        if self._maybe():
            schema["minLength"] = self._random.randrange(5)
        if self._maybe():
            schema["maxLength"] = self._random.randrange(4, 12)
        return schema

    def _bounds(self, low: Any, high: Any) -> dict[str, Any]:
        bounds = {}
        if self._maybe():
            bounds[self._random.choice(("minimum", "exclusiveMinimum"))] = low
        if self._maybe():
            bounds[self._random.choice(("maximum", "exclusiveMaximum"))] = high
        return bounds

    def _integer(self, _depth: int) -> Any:
        low = self._random.randrange(-1500, 1500)
        high = low + self._random.choice((2, 9, 130, 5000))
        step = {"multipleOf": self._random.choice((2, 3, 7, 10, 25))} if self._maybe(0.3) else {}
        return {"type": "integer"} | self._bounds(low, high) | step

    def _number(self, _depth: int) -> Any:
        low = round(self._random.uniform(-20, 20), self._random.randrange(4))
        high = round(low + self._random.choice((0.3, 1, 7.25, 120)), 3)
        step = {"multipleOf": self._random.choice((0.5, 0.01, 0.25, 3))} if self._maybe(0.3) else {}
        return {"type": "number"} | self._bounds(low, high) | step

    def _enum(self, _depth: int) -> Any:
        if self._maybe(0.3):
            return {"const": self._random.choice(_VALUES)}
        return {"enum": self._random.sample(_VALUES, self._random.randrange(1, 6))}

    def _object(self, depth: int) -> Any:
        names = self._random.sample(NAMES, self._random.randrange(5))
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: self.make(depth) for name in names},
        }
        if self._maybe(0.7):
            schema["required"] = [name for name in names if self._maybe()]
        if self._maybe():
            schema["additionalProperties"] = self._random.choice((False, True, self.make(0)))
        if self._maybe(0.1):
            pattern = self._random.choice(("^x-", "^[a-c]{2,3}$", "q"))
            schema["patternProperties"] = {pattern: self.make(0)}
        if self._maybe(0.2):
            schema["minProperties"] = self._random.randrange(3)
        if self._maybe(0.2):
            schema["maxProperties"] = self._random.randrange(2, 6)
        if self._maybe(0.15) and len(names) > 1:
            schema["dependentRequired"] = {names[0]: names[1:2]}
        if self._maybe(0.1) and names:
            schema["dependentSchemas"] = {names[0]: self._object(0)}
        return schema

    def _array(self, depth: int) -> Any:
        schema: dict[str, Any] = {"type": "array"}
        if self._maybe(0.8):
            schema["items"] = False if self._maybe(0.1) else self.make(depth)
        if self._maybe(0.3):
            schema["prefixItems"] = [self.make(depth) for _ in range(self._random.randrange(1, 3))]
        if self._maybe():
            schema["minItems"] = self._random.randrange(3)
        if self._maybe():
            schema["maxItems"] = self._random.randrange(2, 5)
        if self._maybe(0.15):
            schema["contains"] = self.make(0)
            bound = self._random.choice(("minContains", "maxContains", "title"))
            schema[bound] = self._random.randrange(3)
        if self._maybe(0.15):
            items = [self._enum(0), {"type": "boolean"}, {"type": "integer", "maximum": 4}]
            schema = {"type": "array", "uniqueItems": True, "minItems": self._random.randrange(3)}
            schema["items"] = self._random.choice([*items, {"enum": [*_VALUES, "c", "d"]}])
        return schema

    def _choice(self, depth: int) -> Any:
        if self._maybe(0.3):
            return {"oneOf": [self._tagged(tag, depth) for tag in ("x", "y", "z")]}
        if self._maybe(0.3):
            return {"oneOf": [self.make(depth) for _ in range(self._random.randrange(1, 4))]}
        return {"anyOf": [self.make(depth) for _ in range(self._random.randrange(1, 4))]}

    def _tagged(self, tag: str, depth: int) -> Any:
        schema = self._object(depth)
        schema["properties"] |= {"tag": {"const": tag}}
        schema["required"] = [*schema.get("required", []), "tag"]
        return schema

    def _conditional(self, depth: int) -> Any:
        schema = self._object(depth)
        names = list(schema["properties"]) or ["a"]
        condition: dict[str, Any] = {"properties": {names[0]: self._condition()}}
        if self._maybe():
            condition["required"] = names[:1]
        schema["if"] = condition
        for word in ("then", "else"):
            if self._maybe(0.8):
                schema[word] = self._random.choice(({"required": names[-1:]}, self._object(0)))
        if self._maybe(0.1):
            schema["unevaluatedProperties"] = False
        return schema

    def _condition(self) -> Any:
        return self._random.choice(
            (self._enum(0), {"type": "string"}, {"minimum": 3}, {"minLength": 2}, {"not": {}})
        )

    def _excluding(self, depth: int) -> Any:
        values = self._random.sample(_VALUES[:-2], self._random.randrange(1, 4))
        excluded = self._random.choice(
            (
                {"enum": values},
                {"const": values[0]},
                {"type": self._random.choice(("string", "integer", "array", "object"))},
                {"required": ["a"]},
                {"minLength": 2},
                {"maximum": 3},
                {"anyOf": [{"type": "null"}, {"const": "a"}]},
                {"properties": {"a": {"type": "string"}}, "required": ["b"]},
            )
        )
        schema = self._random.choice(({}, self._object(depth), self._enum(0), self._integer(0)))
        return schema | {"not": excluded}

    def _mapping(self, depth: int) -> Any:
        schema: dict[str, Any] = {"type": "object"}
        schema["propertyNames"] = self._random.choice(
            (
                {"pattern": "^[a-z]{2,3}$"},
                {"enum": list(NAMES[:4])},
                {"maxLength": 4},
                {"const": "a"},
            )
        )
        if self._maybe(0.8):
            schema["additionalProperties"] = self.make(depth)
        if self._maybe(0.3):
            schema["minProperties"] = 1
        part = self._object(0) if self._maybe(0.3) else {}
        return part | schema

    def _combined(self, depth: int) -> Any:
        parts = [self._object(depth) for _ in range(2)]
        if self._maybe():
            closed = {"unevaluatedProperties": False} if self._maybe(0.3) else {}
            return {"allOf": parts, "description": "both"} | closed
        schema = self._object(depth) | {"anyOf": parts}
        return json.loads(json.dumps(schema))
