"""Does the model begin a turn, or go on with the last? Fields of vLLM, which llama-server has."""

from collections.abc import Mapping
from typing import Any

from llamero.errors import InvalidValue

Messages = tuple[dict[str, Any], ...]
_FIELDS = ("continue_final_message", "add_generation_prompt")


def read_continuation(
    fields: Mapping[str, Any], messages: Messages, *, is_usual: bool = False
) -> tuple[Messages, str, bool]:
    """Give the messages before the turn, how the turn begins, and whether it is begun at all.

    Where it ``is_usual`` a last message by the assistant is gone on with without being asked.
    """
    begins_turn: bool = fields.get("add_generation_prompt", True)
    is_asked = any(name in fields for name in _FIELDS)
    if not _is_wanted(fields.get("continue_final_message", False)):
        if not is_usual or is_asked or not _can_go_on(messages) or len(messages) == 1:
            return messages, "", begins_turn
        if messages[-2]["role"] == "assistant":
            what = (
                "The last two messages are the assistant's: say by continue_final_message whether"
            )
            raise InvalidValue("messages", f"{what} the last one is to be gone on with.")
        return _split(messages)
    if fields.get("add_generation_prompt"):
        raise _refuse("cannot be true beside add_generation_prompt: true: a turn begins or goes on")
    if not _can_go_on(messages):
        raise _refuse("needs a last message with text by the assistant")
    if len(messages) == 1:
        raise _refuse("needs a message before the last one")
    return _split(messages)


def _is_wanted(value: Any) -> bool:
    """Read the field; llama-server has words for it that say which part is gone on with."""
    if isinstance(value, bool):
        return value
    if value == "content":
        return True
    raise _refuse('must be true, false or "content"; reasoning cannot be gone on with')


def _can_go_on(messages: Messages) -> bool:
    last = messages[-1]
    return bool(last["role"] == "assistant" and last["content"] and not last.get("tool_calls"))


def _split(messages: Messages) -> tuple[Messages, str, bool]:
    return messages[:-1], messages[-1]["content"], True


def _refuse(problem: str) -> InvalidValue:
    return InvalidValue("continue_final_message", f"continue_final_message {problem}.")
