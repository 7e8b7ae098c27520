"""A conversation as Anthropic's clients tell it, in the messages that chat templates know."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from llamero.api.anthropic.blocks import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    read_blocks,
    read_text_blocks,
)
from llamero.api.anthropic.content import call_id
from llamero.api.messages import check_num_messages, read_messages
from llamero.errors import InvalidValue

_ROLES = ("user", "assistant", "system")
Kind = TypeVar("Kind", bound=Block)


@dataclass(frozen=True, slots=True)
class Turn:
    """All that one side says before the other does: messages of a role in a row are one turn."""

    role: str
    blocks: list[Block]
    path: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages for the template, and the beginning of an answer that the model is to go on with."""

    messages: tuple[dict[str, Any], ...]
    prefill: str


def read_conversation(system: Any, messages: Any) -> Conversation:
    """Validate ``system`` and ``messages``, and bring them into a template's shape."""
    turns = _read_turns(messages)
    _check_calls(turns)
    prefill = _take_prefill(turns)
    if not any(turn.role == "user" for turn in turns):
        raise InvalidValue("messages", "messages must hold a message of role user.")
    plain: list[dict[str, Any]] = []
    if system is not None:
        plain.append({"role": "system", "content": read_text_blocks(system, "system")})
    names: dict[str, str] = {}
    for turn in turns:
        plain += _translate(turn, names)
    return Conversation(read_messages(plain), prefill)


def _read_turns(messages: Any) -> list[Turn]:
    if not isinstance(messages, list):
        raise InvalidValue("messages", "messages must be a list of messages.")
    if not messages:
        raise InvalidValue("messages", "messages must not be empty.")
    check_num_messages(messages)
    turns: list[Turn] = []
    for i, message in enumerate(messages):
        turn = _read_turn(message, f"messages[{i}]")
        is_last = i == len(messages) - 1
        if not _has_content(turn) and not (is_last and turn.role == "assistant"):
            raise InvalidValue(f"{turn.path}.content", f"{turn.path}.content must not be empty.")
        if turns and turns[-1].role == turn.role:
            turns[-1].blocks.extend(turn.blocks)
        else:
            turns.append(turn)
    return turns


def _read_turn(message: Any, path: str) -> Turn:
    if not isinstance(message, dict):
        raise InvalidValue(path, f"{path} must be an object with role and content.")
    role = message.get("role")
    if role not in _ROLES:
        raise InvalidValue(f"{path}.role", f"{path}.role must be one of {', '.join(_ROLES)}.")
    return Turn(role, read_blocks(message.get("content"), role, f"{path}.content"), path)


def _has_content(turn: Turn) -> bool:
    return any(not isinstance(block, TextBlock) or block.text for block in turn.blocks)


def _check_calls(turns: Sequence[Turn]) -> None:
    """Refuse calls without a result in the turn that follows, and results without their call."""
    seen: set[str] = set()
    spoken = [turn for turn in turns if turn.role != "system"]
    for before, turn in zip([None, *spoken], [*spoken, None], strict=True):
        calls = _blocks_of(before, ToolUseBlock)
        results = _blocks_of(turn, ToolResultBlock)
        open_calls = {call.id: call for call in calls}
        for call in calls:
            if call.id in seen:
                raise InvalidValue(f"{call.path}.id", f"{call.path}.id: every call has its own id.")
            seen.add(call.id)
        for result in results:
            if open_calls.pop(result.tool_use_id, None) is None:
                field = f"{result.path}.tool_use_id"
                message = f"{field} must be the id of a tool_use block of the message before."
                raise InvalidValue(field, message)
        for call in open_calls.values():
            message = f"{call.path}: the next message must have a tool_result block for it."
            raise InvalidValue(call.path, message)


def _blocks_of(turn: Turn | None, kind: type[Kind]) -> list[Kind]:
    return [] if turn is None else [block for block in turn.blocks if isinstance(block, kind)]


def _take_prefill(turns: list[Turn]) -> str:
    """Take a last turn of the assistant: the model goes on with its text."""
    if turns[-1].role != "assistant":
        return ""
    last = turns.pop()
    if _blocks_of(last, ThinkingBlock):
        message = f"{last.path}: a last message that is to be continued may hold only text."
        raise InvalidValue(f"{last.path}.content", message)
    text = _join(last, "")
    if text != text.rstrip():
        field = f"{last.path}.content"
        message = f"{field}: a last message of the assistant must not end with white space."
        raise InvalidValue(field, message)
    return text


def _translate(turn: Turn, names: dict[str, str]) -> list[dict[str, Any]]:
    """Give the messages of a turn; ``names`` are those of the tools by the ids of their calls."""
    if turn.role == "assistant":
        return [_translate_answer(turn, names)]
    messages: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": call_id(result.tool_use_id),
            "name": names[result.tool_use_id],
            "content": result.text,
        }
        for result in _blocks_of(turn, ToolResultBlock)
    ]
    if any(isinstance(block, TextBlock) for block in turn.blocks):
        messages.append({"role": turn.role, "content": _join(turn, "\n")})
    return messages


def _translate_answer(turn: Turn, names: dict[str, str]) -> dict[str, Any]:
    # The blocks of an answer are cuts of one text.
    message: dict[str, Any] = {"role": "assistant", "content": _join(turn, "")}
    thinking = "\n".join(block.text for block in _blocks_of(turn, ThinkingBlock) if block.text)
    if thinking:
        message["reasoning_content"] = thinking
    calls = _blocks_of(turn, ToolUseBlock)
    if calls:
        names.update((call.id, call.name) for call in calls)
        message["tool_calls"] = [
            {
                "id": call_id(call.id),
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(call.arguments, ensure_ascii=False),
                },
            }
            for call in calls
        ]
    return message


def _join(turn: Turn, separator: str) -> str:
    return separator.join(block.text for block in _blocks_of(turn, TextBlock))
