"""The items of a request's input: checked one by one, and completed as they will be listed."""

from collections.abc import Callable
from typing import Any

from llamero.api.responses.ids import MAX_ID_LENGTH, make_item_id
from llamero.errors import InvalidValue, NotSupported

MAX_ITEMS = 10_000
Item = dict[str, Any]
REFERENCE = "item_reference"
_ROLES = ("user", "assistant", "system", "developer")
_STATUSES = ("in_progress", "completed", "incomplete")


def read_input(value: Any, response_id: str) -> list[Item]:
    """Validate ``input``, a text or a list of items; references stay what they are."""
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise InvalidValue("input", "input must be a string or a list of items.")
    if len(value) > MAX_ITEMS:
        raise InvalidValue("input", f"input may hold at most {MAX_ITEMS} items.")
    return [_read_item(item, f"input[{i}]", i, response_id) for i, item in enumerate(value)]


def _read_item(item: Any, path: str, index: int, response_id: str) -> Item:
    if not isinstance(item, dict):
        raise InvalidValue(path, f"{path} must be an object with a type.")
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else REFERENCE if "id" in item else ""
    if not isinstance(kind, str) or not kind:
        raise InvalidValue(f"{path}.type", f"{path}.type must be a string.")
    if kind not in _READERS:
        raise NotSupported(f"{path}.type", f"{path}: items of type {kind!r:.40} are not supported.")
    prefix, read = _READERS[kind]
    given = item.get("id")
    if given is not None and (not isinstance(given, str) or not 1 <= len(given) <= MAX_ID_LENGTH):
        limit = f"a string of 1 to {MAX_ID_LENGTH} characters"
        raise InvalidValue(f"{path}.id", f"{path}.id must be {limit}.")
    item_id = given or make_item_id(prefix, response_id, index, is_output=False)
    return {"type": kind, "id": item_id, **read(item, path)}


def _read_message(item: Item, path: str) -> Item:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        raise InvalidValue(f"{path}.role", f"{path}.role must be one of {', '.join(_ROLES)}.")
    text_type = "output_text" if role == "assistant" else "input_text"
    if isinstance(content, str):
        content = [{"type": text_type, "text": content}]
    if not isinstance(content, list):
        message = f"{path}.content must be a string or a list of parts."
        raise InvalidValue(f"{path}.content", message)
    parts = [_read_part(part, f"{path}.content[{i}]", text_type) for i, part in enumerate(content)]
    return {"role": role, "status": _read_status(item, path), "content": parts}


def _read_part(part: Any, path: str, text_type: str) -> Item:
    if not isinstance(part, dict):
        raise InvalidValue(path, f"{path} must be an object with a type.")
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text"):
        text = {"type": text_type, "text": _read_text(part, "text", path)}
        return text | {"annotations": []} if text_type == "output_text" else text
    if kind == "refusal" and text_type == "output_text":
        return {"type": "refusal", "refusal": _read_text(part, "refusal", path)}
    if isinstance(kind, str) and kind:
        raise NotSupported(f"{path}.type", f"{path}: parts of type {kind!r:.40} are not supported.")
    raise InvalidValue(f"{path}.type", f"{path}.type must be a string.")


def _read_call(item: Item, path: str) -> Item:
    return {
        "call_id": _read_name(item, "call_id", path),
        "name": _read_name(item, "name", path),
        "arguments": _read_text(item, "arguments", path),
        "status": _read_status(item, path),
    }


def _read_call_output(item: Item, path: str) -> Item:
    output = item.get("output")
    if isinstance(output, list):
        parts = enumerate(output)
        output = [_read_part(part, f"{path}.output[{i}]", "input_text") for i, part in parts]
    elif not isinstance(output, str):
        message = f"{path}.output must be a string or a list of parts."
        raise InvalidValue(f"{path}.output", message)
    call_id = _read_name(item, "call_id", path)
    return {"call_id": call_id, "output": output, "status": _read_status(item, path)}


def _read_reasoning(item: Item, path: str) -> Item:
    read: Item = {}
    for name, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        parts = item.get(name)
        if parts is None:
            parts = []
        if not isinstance(parts, list):
            raise InvalidValue(f"{path}.{name}", f"{path}.{name} must be a list of parts.")
        read[name] = [
            _read_thought(part, f"{path}.{name}[{i}]", kind) for i, part in enumerate(parts)
        ]
    encrypted = item.get("encrypted_content")
    if encrypted is not None:
        read["encrypted_content"] = _read_text(item, "encrypted_content", path)
    return read | {"status": _read_status(item, path)}


def _read_thought(part: Any, path: str, kind: str) -> Item:
    if not isinstance(part, dict) or part.get("type") != kind:
        raise InvalidValue(path, f"{path} must be an object of type {kind}.")
    return {"type": kind, "text": _read_text(part, "text", path)}


def _read_reference(item: Item, path: str) -> Item:
    if item.get("id") is None:
        raise InvalidValue(f"{path}.id", f"{path}.id must be the id of an item.")
    return {}


def _read_status(item: Item, path: str) -> str:
    status = item.get("status")
    if status is None:
        return "completed"
    if status not in _STATUSES:
        message = f"{path}.status must be one of {', '.join(_STATUSES)}."
        raise InvalidValue(f"{path}.status", message)
    return str(status)


def _read_name(item: Item, name: str, path: str) -> str:
    text = _read_text(item, name, path)
    if not text or len(text) > 2 * MAX_ID_LENGTH:
        message = f"{path}.{name} must have 1 to {2 * MAX_ID_LENGTH} characters."
        raise InvalidValue(f"{path}.{name}", message)
    return text


def _read_text(holder: Item, name: str, path: str) -> str:
    value = holder.get(name)
    if not isinstance(value, str):
        raise InvalidValue(f"{path}.{name}", f"{path}.{name} must be a string.")
    return value


_READERS: dict[str, tuple[str, Callable[[Item, str], Item]]] = {
    "message": ("msg", _read_message),
    "function_call": ("fc", _read_call),
    "function_call_output": ("fco", _read_call_output),
    "reasoning": ("rs", _read_reasoning),
    REFERENCE: ("ref", _read_reference),
}
