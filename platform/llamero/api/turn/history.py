"""The earlier turns of a conversation, as a model's template takes them."""

import re
from hashlib import blake2b
from typing import Any

from llamero.api.turn.call_styles import CallStyle
from llamero.api.turn.reasoning_styles import ReasoningStyle

Message = dict[str, Any]


def settle_history(
    messages: tuple[Message, ...],
    template: str,
    reasoning: ReasoningStyle | None,
    style: CallStyle,
    *,
    has_tools: bool,
) -> tuple[Message, ...]:
    """Give the messages with reasoning apart, ids that the template takes, and the style's hint."""
    if reasoning and ("reasoning_content" in template or "split(" in template):
        messages = tuple(_part(message, reasoning) for message in messages)
    if style.id_length:
        messages = tuple(_with_fitting_ids(message, style.id_length) for message in messages)
    return _with_hint(messages, style.hint) if has_tools and style.hint else messages


def _part(message: Message, style: ReasoningStyle) -> Message:
    """Take reasoning out of the words of an answer: many clients keep it there.

    What becomes of it is for the template to say; most leave it out of all but the latest turns.
    """
    if message["role"] != "assistant" or "reasoning_content" in message:
        return message
    before, closing, answer = message["content"].lstrip().partition(style.closing)
    if not closing or not before.startswith(style.opening):
        return message
    thoughts = before.removeprefix(style.opening).strip()
    return message | {"reasoning_content": thoughts, "content": answer.lstrip()}


def _with_fitting_ids(message: Message, length: int) -> Message:
    """Replace ids of calls that the template would refuse; equal ones stay equal."""
    changed = dict(message)
    if "tool_calls" in message:
        changed["tool_calls"] = [
            call | {"id": _fitting_id(call["id"], length)} for call in message["tool_calls"]
        ]
    if "tool_call_id" in message:
        changed["tool_call_id"] = _fitting_id(message["tool_call_id"], length)
    return changed


def _fitting_id(call_id: str, length: int) -> str:
    if re.fullmatch(f"[A-Za-z0-9]{{{length}}}", call_id):
        return call_id
    return blake2b(call_id.encode("utf-8", "replace")).hexdigest()[:length]


def _with_hint(messages: tuple[Message, ...], hint: str) -> tuple[Message, ...]:
    first = messages[0]
    if first["role"] != "system":
        return ({"role": "system", "content": hint}, *messages)
    return (first | {"content": f"{first['content']}\n{hint}".strip()}, *messages[1:])
