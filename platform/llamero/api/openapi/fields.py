"""The fields of request serializers as JSON Schemas, with exactly the bounds that they check."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension

from llamero.api import fields
from llamero.api.openapi.request_values import value_of
from llamero.api.openapi.shapes import Schema, either, list_of, or_null


def describe(field: Any) -> Schema:
    """Give the schema of a field; one that may be absent may be null as well."""
    schema = _WRITERS[type(field)](field)
    return schema if field.required else or_null(schema)


def _boolean(field: fields.StrictBoolean) -> Schema:
    return {"type": "boolean"}


def _integer(field: fields.StrictInteger) -> Schema:
    return {"type": "integer", "minimum": field.min_value, "maximum": field.max_value}


def _float(field: fields.StrictFloat) -> Schema:
    low = "exclusiveMinimum" if field.is_open else "minimum"
    return {"type": "number", low: field.min_value, "maximum": field.max_value}


def _string(field: fields.StrictString) -> Schema:
    schema: Schema = {"type": "string"}
    if field.max_length is not None:
        schema["maxLength"] = field.max_length
    if field.choices:
        schema["enum"] = list(field.choices)
    return schema


def _stop(field: fields.StopStrings) -> Schema:
    word = {"type": "string", "minLength": 1, "maxLength": field.max_length}
    return either(word, list_of(word) | {"maxItems": field.max_items})


def _value(field: fields.AnyValue) -> Schema:
    return value_of(type(field.parent).__mro__, str(field.field_name))


_WRITERS: dict[type, Callable[[Any], Schema]] = {
    fields.StrictBoolean: _boolean,
    fields.StrictInteger: _integer,
    fields.StrictFloat: _float,
    fields.StrictString: _string,
    fields.StopStrings: _stop,
    fields.AnyValue: _value,
}


def _make_extension(kind: type) -> type[OpenApiSerializerFieldExtension]:
    """Tell the generator about one kind of field."""

    class Extension(OpenApiSerializerFieldExtension):  # type: ignore[misc]
        target_class = kind

        def map_serializer_field(self, auto_schema: Any, direction: str) -> Schema:
            return describe(self.target)

    return Extension


EXTENSIONS = [_make_extension(kind) for kind in _WRITERS]
