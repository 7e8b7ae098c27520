"""From items to the messages that chat templates know: a turn of the model is one message."""

from collections.abc import Sequence
from typing import Any

from llamero.api.responses.items import Item
from llamero.errors import InvalidValue

Message = dict[str, Any]


def make_messages(
    instructions: str, items: Sequence[Item], paths: Sequence[str]
) -> tuple[Message, ...]:
    """Make the messages of a conversation; ``paths`` say where the items came from, for errors.

    What the model said, thought and called in one turn are items of their own, and one message.
    Instructions and what else comes first from the system are joined: many templates take one.
    """
    messages: list[Message] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    known_calls: set[str] = set()
    for item, path in zip(items, paths, strict=True):
        match item["type"]:
            case "message":
                _add_message(messages, item)
            case "function_call":
                # A call that was cut off is no valid JSON, and was never answered.
                if item["status"] == "completed":
                    known_calls.add(item["call_id"])
                    _open_turn(messages).setdefault("tool_calls", []).append(_make_call(item))
            case "function_call_output":
                if item["call_id"] not in known_calls:
                    raise _no_such_call(item, path)
                messages.append(_make_tool_message(item))
            case "reasoning":
                _add_reasoning(messages, item)
    return tuple(messages)


def text_of(parts: Sequence[Item]) -> str:
    """Join the texts of parts."""
    return "\n".join(part.get("text") or part.get("refusal") or "" for part in parts)


def _add_message(messages: list[Message], item: Item) -> None:
    text = text_of(item["content"])
    if item["role"] == "assistant":
        turn = _open_turn(messages)
        if turn["content"] or "tool_calls" in turn:
            turn = {"role": "assistant", "content": ""}
            messages.append(turn)
        turn["content"] = text
        return
    role = "user" if item["role"] == "user" else "system"
    is_first = all(message["role"] == "system" for message in messages)
    if role == "system" and messages and is_first:
        messages[-1]["content"] += "\n\n" + text
    else:
        messages.append({"role": role, "content": text})


def _add_reasoning(messages: list[Message], item: Item) -> None:
    """Begin a turn of the model with what it thought, where that is told."""
    text = text_of(item["content"] or item["summary"])
    if text:
        messages.append({"role": "assistant", "content": "", "reasoning_content": text})


def _open_turn(messages: list[Message]) -> Message:
    """Give the model's turn that the next item belongs to."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    return messages[-1]


def _make_call(item: Item) -> Message:
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _make_tool_message(item: Item) -> Message:
    output = item["output"]
    content = output if isinstance(output, str) else text_of(output)
    return {"role": "tool", "tool_call_id": item["call_id"], "content": content}


def _no_such_call(item: Item, path: str) -> InvalidValue:
    path = f"{path}.call_id"
    return InvalidValue(
        path, f"{path}: no tool call with the id {item['call_id']!r:.140} is known."
    )
