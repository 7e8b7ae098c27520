"""Does the model begin a turn, or go on with the last? Fields of vLLM, which llama-server has."""

from collections.abc import Mapping
from typing import Any

from llamero.errors import InvalidValue

Messages = tuple[dict[str, Any], ...]


def read_continuation(fields: Mapping[str, Any], messages: Messages) -> tuple[Messages, str, bool]:
    """Give the messages before the turn, how the turn begins, and whether it is begun at all."""
    begins_turn: bool = fields.get("add_generation_prompt", True)
    if not fields.get("continue_final_message", False):
        return messages, "", begins_turn
    if fields.get("add_generation_prompt"):
        raise _refuse("cannot be true beside add_generation_prompt: true: a turn begins or goes on")
    last = messages[-1]
    if last["role"] != "assistant" or not last["content"] or last.get("tool_calls"):
        raise _refuse("needs a last message with text by the assistant")
    if len(messages) == 1:
        raise _refuse("needs a message before the last one")
    return messages[:-1], last["content"], True


def _refuse(problem: str) -> InvalidValue:
    return InvalidValue("continue_final_message", f"continue_final_message {problem}.")
