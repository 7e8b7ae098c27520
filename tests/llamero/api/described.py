"""The API's own description, as a judge of its answers."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from jsonschema import Draft202012Validator

from llamero.api.openapi.views import write_document

JSON, EVENTS = "application/json", "text/event-stream"


class Answered(Protocol):
    """An answer, as any client of the tests has it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...


@cache
def document() -> dict[str, Any]:
    """The description, with every object closed: a field that it does not know is an error."""
    found: dict[str, Any] = json.loads(write_document())
    _close(found["components"]["schemas"])
    return found


def check(method: str, url: str, answer: Answered) -> None:
    """Fail unless an answer is what the description says of its route."""
    path = url.partition("?")[0]
    template = _find(method, path)
    assert template, f"{method} {path} is not described"
    _check(method.lower(), template, answer)


def check_if_described(method: str, url: str, answer: Answered) -> None:
    """The same, for what may also be an address of nobody, or another method."""
    template = _find(method, url.partition("?")[0])
    if template:
        _check(method.lower(), template, answer)


def _check(method: str, template: str, answer: Answered) -> None:
    responses = document()["paths"][template][method]["responses"]
    status = str(answer.status)
    if status not in responses:
        status = f"{answer.status // 100}XX"
    media_type = answer.headers.get("content-type", "").partition(";")[0]
    if media_type == JSON:
        _judge(_validator(method, template, status, JSON), json.loads(answer.body))
    elif media_type == EVENTS:
        validator = _validator(method, template, status, EVENTS)
        for line in answer.body.decode().splitlines():
            name, _, data = line.partition(": ")
            if name == "data" and data != "[DONE]":
                _judge(validator, json.loads(data))
    else:
        assert media_type in responses[status].get("content", {"": {}}), media_type


@cache
def _find(method: str, path: str) -> str:
    """Give the described path that an address is of, "" where there is none."""
    paths = document()["paths"]
    for template in sorted(paths, key=lambda one: (one.count("{"), -len(one))):
        pattern = re.sub(r"\\{[a-z_]+\\}", ".+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in paths[template]:
            return str(template)
    return ""


@cache
def _validator(method: str, template: str, status: str, media_type: str) -> Draft202012Validator:
    responses = document()["paths"][template][method]["responses"]
    schema = responses[status]["content"][media_type]["schema"]
    if media_type == EVENTS:
        schema = schema["properties"]["data"]["contentSchema"]
    return _make_validator(schema)


def validate(value: Any, schema: dict[str, Any]) -> None:
    """Fail unless a value keeps a schema of the description."""
    _judge(_make_validator(schema), value)


def _make_validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({"components": document()["components"], "allOf": [schema]})


def _judge(validator: Draft202012Validator, value: Any) -> None:
    errors = list(validator.iter_errors(value))
    assert not errors, [(list(error.absolute_path), error.message[:500]) for error in errors]


def _close(schema: Any) -> None:
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            _close(part)
    elif isinstance(schema, list):
        for part in schema:
            _close(part)
