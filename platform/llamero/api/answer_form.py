"""What form an answer must have: the grammar that a request's fields mean, one at most."""

import json
from functools import lru_cache
from typing import Any

from inference.text.json_schema import schema_to_grammar
from llamero.api.grammar import JSON_OBJECT, check_grammar
from llamero.errors import InvalidValue

_FIELDS = ("grammar", "json_schema", "response_format")
# Each grammar and its schema have at most 64 KiB.
_NUM_CACHED = 64


def read_answer_form(fields: dict[str, Any]) -> str:
    """Give the grammar an answer must follow; an empty one leaves it free."""
    grammars = {
        "grammar": check_grammar(fields.get("grammar", "")),
        "json_schema": _read_schema(fields["json_schema"], "json_schema")
        if "json_schema" in fields
        else "",
        "response_format": _read_response_format(fields.get("response_format")),
    }
    given = [name for name in _FIELDS if grammars[name]]
    if len(given) > 1:
        raise InvalidValue(given[0], f"Give either {given[0]} or {given[1]}.")
    return grammars[given[0]] if given else ""


def _read_response_format(value: Any) -> str:
    if value is None:
        return ""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return ""
    if kind == "json_object":
        schema = value.get("schema")
        return _read_schema(schema, "response_format") if schema else JSON_OBJECT
    if kind == "json_schema":
        return _read_schema(_find_schema(value), "response_format")
    raise InvalidValue(
        "response_format",
        "response_format must be an object of type text, json_object or json_schema.",
    )


def _find_schema(value: dict[str, Any]) -> Any:
    """Give the schema of a format: OpenAI's place for it, or llama-server's."""
    holder = value.get("json_schema", value)
    if not isinstance(holder, dict) or holder.get("schema") is None:
        raise _invalid_format("response_format.json_schema must be an object with a schema.")
    name, strict = holder.get("name"), holder.get("strict")
    if name is not None and not isinstance(name, str):
        raise _invalid_format("response_format.json_schema.name must be a string.")
    if strict is not None and type(strict) is not bool:
        raise _invalid_format("response_format.json_schema.strict must be true or false.")
    return holder["schema"]


def _invalid_format(message: str) -> InvalidValue:
    return InvalidValue("response_format", message)


def _read_schema(schema: Any, param: str) -> str:
    return _convert(json.dumps(schema), param)


@lru_cache(_NUM_CACHED)
def _convert(text: str, param: str) -> str:
    return schema_to_grammar(json.loads(text), param=param)
