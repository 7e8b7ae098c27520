"""``text.format``: the form of an answer, which chat completions call ``response_format``."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from inference.protocol.errors import EngineError
from llamero.errors import InvalidValue, LlameroError

_PATH = "text.format"
_CHAT_PATHS = ("response_format.json_schema", "response_format")


def to_response_format(form: dict[str, Any]) -> dict[str, Any] | None:
    """Give the chat's word for a format; nothing for free text."""
    match form.get("type"):
        case "text":
            return None
        case "json_object":
            return {"type": "json_object"}
        case "json_schema":
            if not isinstance(form.get("schema"), dict):
                raise InvalidValue(f"{_PATH}.schema", f"{_PATH}.schema must be a JSON schema.")
            holder = {name: form.get(name) for name in ("name", "schema", "strict")}
            return {"type": "json_schema", "json_schema": holder}
    message = f"{_PATH}.type must be text, json_object or json_schema."
    raise InvalidValue(f"{_PATH}.type", message)


@contextmanager
def naming_text_format() -> Iterator[None]:
    """Have errors about a format speak of the field that the client sent."""
    try:
        yield
    except LlameroError as error:
        error.param, error.message = _rename(error.param), _rename(error.message) or ""
        raise
    except EngineError as error:
        raise EngineError(
            error.code, _rename(error.message) or "", param=_rename(error.param)
        ) from None


def _rename(text: str | None) -> str | None:
    for name in _CHAT_PATHS:
        text = text and text.replace(name, _PATH)
    return text
