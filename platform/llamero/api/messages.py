"""Chat messages: checked one by one, and brought to the plain form that templates expect."""

import json
from typing import Any

from django.conf import settings

from llamero.errors import InvalidValue, NotSupported

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def read_messages(value: Any) -> tuple[dict[str, Any], ...]:
    """Validate and normalise: roles known, content one string."""
    if not isinstance(value, list):
        raise InvalidValue("messages", "messages must be a list of messages.")
    if not value:
        raise InvalidValue("messages", "messages must not be empty.")
    check_num_messages(value)
    read = [_read_message(message, f"messages[{i}]") for i, message in enumerate(value)]
    return tuple(_link_results(read))


def check_num_messages(messages: list[Any]) -> None:
    """Refuse a conversation that is too long before any message of it is read."""
    if len(messages) > settings.MAX_MESSAGES:
        message = f"messages may hold at most {settings.MAX_MESSAGES} messages."
        raise InvalidValue("messages", message)


def _read_message(message: Any, path: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise InvalidValue(path, f"{path} must be an object with role and content.")
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidValue(f"{path}.role", f"{path}.role must be one of {', '.join(_ROLES)}.")
    normal: dict[str, Any] = {"role": _ROLES[role]}
    calls = _read_calls(message, path) if role == "assistant" else []
    if calls:
        normal["tool_calls"] = calls
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    content, refusal = message.get("content"), message.get("refusal")
    if role == "assistant" and content is None and refusal is not None:
        content = _read_text(refusal, f"{path}.refusal")
    may_be_absent = role == "assistant" and bool(calls or thoughts)
    normal["content"] = _read_content(content, f"{path}.content", may_be_absent=may_be_absent)
    for name in ("name", "tool_call_id"):
        text = message.get(name)
        if text is not None:
            normal[name] = _read_text(text, f"{path}.{name}")
    if role == "assistant" and thoughts:
        normal["reasoning_content"] = _read_text(thoughts, f"{path}.reasoning_content")
    return normal


def _read_calls(message: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """Read the calls of a message; the older ``function_call`` becomes one of them."""
    calls, older = message.get("tool_calls"), message.get("function_call")
    read = [] if calls is None else _read_tool_calls(calls, f"{path}.tool_calls")
    if read or older is None:
        return read
    function = _read_function(older, f"{path}.function_call")
    return [{"id": "", "type": "function", "function": function}]


def _link_results(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give calls ids and results the name and id of their calls, where clients leave them out."""
    names: dict[str, str] = {}
    latest: dict[str, str] = {}
    for i, message in enumerate(messages):
        for k, call in enumerate(message.get("tool_calls", ())):
            call["id"] = call["id"] or f"call_{i}_{k}"
            names[call["id"]] = call["function"]["name"]
            latest[call["function"]["name"]] = call["id"]
        if message["role"] == "tool":
            if "name" not in message and message.get("tool_call_id") in names:
                message["name"] = names[message["tool_call_id"]]
            if "tool_call_id" not in message and message.get("name") in latest:
                message["tool_call_id"] = latest[message["name"]]
    return messages


def _read_content(content: Any, path: str, *, may_be_absent: bool) -> str:
    if content is None and may_be_absent:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_read_part(part, f"{path}[{i}]") for i, part in enumerate(content))
    raise InvalidValue(path, f"{path} must be a string or a list of text parts.")


def _read_part(part: Any, path: str) -> str:
    if not isinstance(part, dict):
        raise InvalidValue(path, f"{path} must be an object with a type.")
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text"):
        return _read_text(part.get("text"), f"{path}.text")
    if kind == "refusal":
        return _read_text(part.get("refusal"), f"{path}.refusal")
    if isinstance(kind, str) and kind:
        raise NotSupported(f"{path}.type", f"{path}: parts of type {kind!r:.40} are not supported.")
    raise InvalidValue(f"{path}.type", f"{path}.type must be a string.")


def _read_tool_calls(calls: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(calls, list):
        raise InvalidValue(path, f"{path} must be a list.")
    return [_read_tool_call(call, f"{path}[{i}]") for i, call in enumerate(calls)]


def _read_tool_call(call: Any, path: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise InvalidValue(path, f"{path} must be an object with a function.")
    return {
        "id": _read_text(_or_empty(call.get("id")), f"{path}.id"),
        "type": "function",
        "function": _read_function(function, f"{path}.function"),
    }


def _read_function(function: Any, path: str) -> dict[str, str]:
    """Read what is called, and with what; arguments that are null are none."""
    if not isinstance(function, dict):
        raise InvalidValue(path, f"{path} must be an object with name and arguments.")
    arguments = _or_empty(function.get("arguments"))
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {
        "name": _read_text(function.get("name"), f"{path}.name"),
        "arguments": _read_text(arguments, f"{path}.arguments"),
    }


def _or_empty(value: Any) -> Any:
    return "" if value is None else value


def _read_text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(path, f"{path} must be a string.")
    return value
