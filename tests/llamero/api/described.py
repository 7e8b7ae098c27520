"""The API's own description, as a judge of its answers."""

import json
import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from llamero.api.openapi.views import write_document
from tests.llamero.api.asgi_client import Answer


@cache
def document() -> dict[str, Any]:
    """The description, with every object closed: a field that it does not know is an error."""
    found: dict[str, Any] = json.loads(write_document())
    _close(found["components"]["schemas"])
    return found


def check(method: str, url: str, answer: Answer) -> None:
    """Fail unless an answer is what the description says of its route."""
    operation = _find(method, url.partition("?")[0])
    responses = operation["responses"]
    described = responses.get(str(answer.status)) or responses[f"{answer.status // 100}XX"]
    media_type = answer.headers["content-type"].partition(";")[0]
    content = described["content"][media_type]
    if media_type == "application/json":
        validate(json.loads(answer.body), content["schema"])
    elif media_type == "text/event-stream":
        for line in answer.body.decode().splitlines():
            name, _, data = line.partition(": ")
            if name == "data" and data != "[DONE]":
                validate(json.loads(data), content["schema"]["properties"]["data"]["contentSchema"])


def _find(method: str, path: str) -> dict[str, Any]:
    paths = document()["paths"]
    for template in sorted(paths, key=lambda one: (one.count("{"), -len(one))):
        pattern = re.sub(r"\\{[a-z_]+\\}", ".+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in paths[template]:
            found: dict[str, Any] = paths[template][method.lower()]
            return found
    raise AssertionError(f"{method} {path} is not described")


def validate(value: Any, schema: dict[str, Any]) -> None:
    whole = {"components": document()["components"], "allOf": [schema]}
    errors = list(Draft202012Validator(whole).iter_errors(value))
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
