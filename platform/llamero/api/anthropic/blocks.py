"""The blocks that messages are made of, as clients send them."""

from dataclasses import dataclass
from typing import Any

from llamero.errors import InvalidValue, NotSupported

# What Anthropic takes and no model here can read, or no server here can run.
_UNSUPPORTED = frozenset(
    {
        "image",
        "document",
        "search_result",
        "server_tool_use",
        "mcp_tool_use",
        "mcp_tool_result",
        "container_upload",
        "tool_reference",
    }
)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """What the model thought; nothing where that was hidden from the client."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUseBlock:
    """A call that the model made."""

    id: str
    name: str
    arguments: dict[str, Any]
    path: str


@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    """What a call gave, as text."""

    tool_use_id: str
    text: str
    path: str


Block = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock


def read_text_blocks(value: Any, path: str) -> str:
    """Read a string, or blocks that may only be text; blocks are joined by line breaks."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise InvalidValue(path, f"{path} must be a string or a list of text blocks.")
    return "\n".join(_read_text_block(block, f"{path}[{i}]") for i, block in enumerate(value))


def read_blocks(value: Any, role: str, path: str) -> list[Block]:
    """Read the content of a message: a string, or blocks that its role may have."""
    if isinstance(value, str):
        return [TextBlock(value)]
    if not isinstance(value, list):
        raise InvalidValue(path, f"{path} must be a string or a list of content blocks.")
    return [_read_block(block, role, f"{path}[{i}]") for i, block in enumerate(value)]


def _read_block(block: Any, role: str, path: str) -> Block:
    kind = _read_kind(block, path)
    if kind == "text":
        return TextBlock(_read_string(block, "text", path))
    readers = {
        "user": {"tool_result": _read_tool_result},
        "assistant": {
            "tool_use": _read_tool_use,
            "thinking": _read_thinking,
            "redacted_thinking": _read_redacted,
        },
    }
    reader = readers.get(role, {}).get(kind)
    if reader is None:
        raise _refuse(kind, role, path)
    return reader(block, path)


def _refuse(kind: str, role: str, path: str) -> Exception:
    if kind in _UNSUPPORTED or kind.endswith("_tool_result"):
        return NotSupported(
            f"{path}.type", f"{path}: blocks of type {kind!r:.40} are not supported."
        )
    message = f"{path}.type: a message of role {role} may have no block of type {kind!r:.40}."
    return InvalidValue(f"{path}.type", message)


def _read_kind(block: Any, path: str) -> str:
    if not isinstance(block, dict):
        raise InvalidValue(path, f"{path} must be an object with a type.")
    return _read_string(block, "type", path)


def _read_text_block(block: Any, path: str) -> str:
    kind = _read_kind(block, path)
    if kind == "text":
        return _read_string(block, "text", path)
    if kind in _UNSUPPORTED:
        raise _refuse(kind, "", path)
    raise InvalidValue(f"{path}.type", f"{path}.type must be text.")


def _read_thinking(block: dict[str, Any], path: str) -> Block:
    if block.get("signature") is not None:
        _read_string(block, "signature", path)
    return ThinkingBlock(_read_string(block, "thinking", path))


def _read_redacted(block: dict[str, Any], path: str) -> Block:
    _read_string(block, "data", path)
    return ThinkingBlock("")


def _read_tool_use(block: dict[str, Any], path: str) -> Block:
    arguments = block.get("input")
    if not isinstance(arguments, dict):
        raise InvalidValue(f"{path}.input", f"{path}.input must be an object.")
    return ToolUseBlock(
        id=_read_word(block, "id", path),
        name=_read_word(block, "name", path),
        arguments=arguments,
        path=path,
    )


def _read_tool_result(block: dict[str, Any], path: str) -> Block:
    """Read a result; templates know no failures, so that one is told by its text."""
    is_error = block.get("is_error")
    if is_error is not None and type(is_error) is not bool:
        raise InvalidValue(f"{path}.is_error", f"{path}.is_error must be true or false.")
    content = block.get("content")
    text = "" if content is None else read_text_blocks(content, f"{path}.content")
    return ToolResultBlock(
        tool_use_id=_read_word(block, "tool_use_id", path),
        text=f"Error: {text}" if is_error else text,
        path=path,
    )


def _read_word(block: dict[str, Any], name: str, path: str) -> str:
    word = _read_string(block, name, path)
    if not word:
        raise InvalidValue(f"{path}.{name}", f"{path}.{name} must not be empty.")
    return word


def _read_string(block: dict[str, Any], name: str, path: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise InvalidValue(f"{path}.{name}", f"{path}.{name} must be a string.")
    return value
