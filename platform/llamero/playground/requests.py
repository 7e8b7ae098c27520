"""What the playground's page may send, field by field."""

from typing import Any

from llamero.api.fields import (
    AnyValue,
    RequestSerializer,
    StrictBoolean,
    StrictInteger,
    StrictString,
    validate,
)
from llamero.api.json_body import read_json_object
from llamero.errors import InvalidValue, LlameroError
from llamero.playground.models import MAX_TITLE
from llamero.playground.services import NewTurn

MAX_TEXT = 200_000
MAX_SETTINGS_BYTES = 128 * 1024
_MAX_ID = 2**63 - 1
_MAX_RESULTS = 64


class ChatChanges(RequestSerializer):
    """What may be changed of a chat."""

    refused = ()
    title = StrictString(max_length=MAX_TITLE, required=False)
    leaves = AnyValue(required=False)
    shared = StrictBoolean(required=False)


class TurnFields(RequestSerializer):
    """What is said, and how the answer is asked for."""

    refused = ()
    # REST framework takes fields off the class, where it has a parent of its own.
    parent = StrictInteger(1, _MAX_ID, required=False)  # type: ignore[assignment]
    text = StrictString(max_length=MAX_TEXT, required=False)
    results = AnyValue(required=False)
    request = AnyValue()
    column = StrictInteger(0, 1, required=False)
    columns = StrictInteger(1, 2, required=False)


class Refusal(RequestSerializer):
    """How a run ended that never began."""

    refused = ()
    code = StrictString(max_length=100)
    message = StrictString(max_length=2000)


class PresetFields(RequestSerializer):
    """A preset."""

    refused = ()
    name = StrictString(max_length=100)
    settings = AnyValue()


def read_changes(request: Any) -> dict[str, Any]:
    """Read what is to be changed of a chat."""
    changes = validate(ChatChanges, read_json_object(request))
    if "leaves" in changes:
        leaves = changes["leaves"]
        if not isinstance(leaves, list) or len(leaves) > 2 or not all(map(_is_id, leaves)):
            raise InvalidValue("leaves", "leaves must be a list of at most two ids of messages.")
    return changes


def read_turn(request: Any) -> NewTurn:
    """Read a turn."""
    fields = validate(TurnFields, read_json_object(request))
    text = fields.get("text")
    if text is not None and not text.strip():
        raise InvalidValue("text", "text must not be empty.")
    column, num_columns = fields.get("column", 0), fields.get("columns", 1)
    if column >= num_columns:
        raise InvalidValue("column", "column must be less than columns.")
    return NewTurn(
        parent_id=fields.get("parent"),
        text=text,
        results=_read_results(fields.get("results", [])),
        request=_read_settings(fields["request"], "request"),
        column=column,
        num_columns=num_columns,
    )


def read_refusal(request: Any) -> LlameroError | None:
    """Read how a run was refused, if the page says so."""
    refusal = read_json_object(request).get("refusal")
    if refusal is None:
        return None
    if not isinstance(refusal, dict):
        raise InvalidValue("refusal", "refusal must be an object.")
    fields = validate(Refusal, refusal)
    return LlameroError(400, fields["code"], fields["message"])


def read_preset(request: Any) -> tuple[str, dict[str, Any]]:
    """Read a preset: its name and its settings."""
    fields = validate(PresetFields, read_json_object(request))
    name = fields["name"].strip()
    if not name or "\0" in name:
        raise InvalidValue("name", "name must not be empty, and hold no NUL.")
    return name, _read_settings(fields["settings"], "settings")


def _read_results(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, list) or len(value) > _MAX_RESULTS:
        raise InvalidValue("results", f"results must be a list of at most {_MAX_RESULTS}.")
    return [_read_result(item, index) for index, item in enumerate(value)]


def _read_result(item: Any, index: int) -> tuple[str, str]:
    call_id, text = (item.get("id"), item.get("text")) if isinstance(item, dict) else (None, None)
    if not isinstance(call_id, str) or not isinstance(text, str) or len(text) > MAX_TEXT:
        message = f"results[{index}] must be an object with the id of a call and a text."
        raise InvalidValue("results", message)
    return call_id, text


def _read_settings(value: Any, param: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(param, f"{param} must be an object.")
    if len(str(value)) > MAX_SETTINGS_BYTES:
        raise InvalidValue(param, f"{param} may have {MAX_SETTINGS_BYTES} bytes at most.")
    return value


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 < value <= _MAX_ID
