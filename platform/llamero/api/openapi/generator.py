"""Makes the OpenAPI document: requests from their serializers, the rest from our descriptions."""

import re
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

from llamero.api.openapi import (
    answers_anthropic,
    answers_batches,
    answers_imports,
    answers_native,
    answers_openai,
    answers_responses,
    answers_usage,
    fields,
)
from llamero.api.openapi.examples import example_of, model_of
from llamero.api.openapi.operation import Operation
from llamero.api.openapi.operations import operation_of
from llamero.api.openapi.shapes import TEXT, Schema, ref, shape
from llamero.api.openapi.tags import Tag
from llamero.api.paths import Dialect

assert fields.EXTENSIONS, "the generator knows our fields by these"

JSON, EVENTS, FORM = "application/json", "text/event-stream", "multipart/form-data"
COMPONENTS: dict[str, Schema] = {
    name: schema
    for answers in (
        answers_openai,
        answers_responses,
        answers_usage,
        answers_anthropic,
        answers_native,
        answers_batches,
        answers_imports,
    )
    for name, schema in answers.COMPONENTS.items()
}
_ERRORS = {
    Dialect.OPENAI: ref("Error"),
    Dialect.LLAMA_SERVER: ref("NativeError"),
    Dialect.ANTHROPIC: ref("AnthropicError"),
}
_SECURITY_SCHEMES: dict[str, Schema] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
}
_PREFIXES = {"native": "Native", "anthropic": "Anthropic", "responses": "Response"}
# Parts of paths that name a model.
_MODEL_PARAMETERS = frozenset({"model", "name"})
_MODEL_FIELD = TEXT | {"description": "A model's name, or one of its aliases."}


def describe_events(data: Schema) -> Schema:
    """Describe each event of a stream; OpenAPI 3.1 has no word of its own for that."""
    content = {"contentMediaType": "application/json", "contentSchema": data}
    return shape({"data": TEXT | content}, {"event": TEXT, "id": TEXT}) | {
        "description": "Each event. OpenAI's streams end with the data `[DONE]`."
    }


def _place_of(path: tuple[str, Schema]) -> tuple[bool, bool, str]:
    """Sort what most clients use first, and what is there once more below a model's name last."""
    name = path[0]
    return name.startswith("/m/"), not name.startswith("/v1/"), name


class ApiSchema(AutoSchema):  # type: ignore[misc]
    """Describes one method of one route."""

    @property
    def operation(self) -> Operation:
        """What is said of it."""
        return operation_of(self.view, self.method)

    def get_operation_id(self) -> str:
        """Name it by its method and path, which no other has."""
        words = re.findall(r"\w+", self.path)
        return "_".join([self.method.lower(), *words])

    def get_summary(self) -> str:
        """Say what it does."""
        return self.operation.summary

    def get_description(self) -> str:
        """Add nothing: docstrings are for who reads the code."""
        return ""

    def get_tags(self) -> list[str]:
        """Sort routes by what they are for; those below a model's name are apart."""
        tag = Tag.BELOW_A_MODEL if self.path.startswith("/m/") else self.operation.tag
        return [tag.value]

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Any of three headers has the key; where there is no authentication none is needed."""
        if not self.view.get_authenticators():
            return [{}]
        return [{name: []} for name in _SECURITY_SCHEMES]

    def get_override_parameters(self) -> list[Any]:
        """Give headers and query parameters; a path that names a model leaves no other way to."""
        is_named = self.path.startswith("/m/")
        return [one for one in self.operation.parameters if not (is_named and one.name == "model")]

    def get_request_serializer(self) -> Any:
        """Give the body's serializer, or its schema."""
        if self.operation.form is not None:
            return {FORM: self.operation.form}
        body = self.operation.body
        return {JSON: body} if body is not None else getattr(self.view, "serializer_class", None)

    def get_response_serializers(self) -> dict[Any, Any]:
        """Give the answer, the events of a stream, and errors in the route's own shape."""
        operation = self.operation
        answers: dict[Any, Any] = {}
        if operation.answer is not None:
            answers[200, operation.media_type or JSON] = operation.answer
        if operation.event is not None:
            answers[200, EVENTS] = describe_events(operation.event)
        if not answers:
            answers[204] = None
        error = operation.error or _ERRORS[self.view.dialect]
        return answers | {("4XX", JSON): error, ("5XX", JSON): error}

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        """Name a request's body; those of one name are told apart by where they are."""
        name = type(serializer).__name__.removesuffix("Serializer").removesuffix("Fields")
        dialect = type(serializer).__module__.split(".")[2]
        return f"{_PREFIXES.get(dialect, '')}{name}Request"

    def map_parsers(self) -> list[str]:
        """Take JSON alone."""
        return [JSON]

    def _get_request_body(self, direction: str = "request") -> Any:
        body = super()._get_request_body(direction)
        example = example_of(self.view, self.path)
        if body is not None and example is not None:
            body["content"][JSON]["example"] = example
        return body

    def _resolve_path_parameters(self, variables: Any) -> list[Schema]:
        parameters: list[Schema] = super()._resolve_path_parameters(variables)
        for parameter in parameters:
            if parameter["name"] in _MODEL_PARAMETERS:
                parameter["example"] = model_of(self.view)
        return parameters

    def _get_response_bodies(self, direction: str = "response") -> Schema:
        bodies: Schema = super()._get_response_bodies(direction)
        for status, answer in bodies.items():
            answer["description"] = "An error." if "X" in status else "The answer."
        return bodies


class ApiGenerator(SchemaGenerator):  # type: ignore[misc]
    """Describes all routes of the API."""

    def create_view(self, callback: Any, method: str, request: Any = None) -> Any:
        """Have a view described by our words; the project's other views need none."""
        view = super().create_view(callback, method, request)
        self._set_schema_to_view(view, ApiSchema())
        return view

    def get_schema(self, request: Any = None, public: bool = True) -> Schema:
        """Give the whole document."""
        document: Schema = super().get_schema(request, public)
        schemas = document["components"].setdefault("schemas", {})
        for name in [name for name in schemas if name not in COMPONENTS]:
            schemas[name].setdefault("properties", {}).setdefault("model", _MODEL_FIELD)
        schemas |= COMPONENTS
        document["paths"] = dict(sorted(document["paths"].items(), key=_place_of))
        document["components"]["securitySchemes"] = _SECURITY_SCHEMES
        document["tags"] = [{"name": tag.value} for tag in Tag]
        return document
