"""A few words to write JSON Schemas with."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
INTEGER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
NOTHING: Schema = {"type": "null"}
ANY_OBJECT: Schema = {"type": "object"}
ANYTHING: Schema = {}


def shape(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """Describe an object by the fields it always has, and those it may have."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
    }


def ref(name: str) -> Schema:
    """Refer to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(item: Schema) -> Schema:
    """Describe a list."""
    return {"type": "array", "items": item}


def map_of(value: Schema) -> Schema:
    """Describe an object with any keys."""
    return {"type": "object", "additionalProperties": value}


def one_of(*words: str | None) -> Schema:
    """Describe one of a few words, or null."""
    return {"enum": list(words)}


def either(*schemas: Schema) -> Schema:
    """Describe what is one of several things."""
    return {"anyOf": list(schemas)}


def or_null(schema: Schema) -> Schema:
    """Describe what may be null."""
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return schema | {"type": [kind, "null"]}
    return either(schema, NOTHING)
