"""What a message says beside its content: who it is, why it ended, what it cost."""

from typing import Any

import msgspec

from inference.protocol.events import Done, FinishReason
from llamero.api.turn import TurnFormat, TurnReader


class MessageShape(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer to one request is told.

    ``hides_thinking`` keeps the words of thinking blocks from the client.
    """

    id: str
    model: str
    num_prompt_tokens: int
    max_tokens: int
    stop_sequences: tuple[str, ...]
    hides_thinking: bool
    turn: TurnFormat

    def envelope(self, content: list[dict[str, Any]], usage: dict[str, Any]) -> dict[str, Any]:
        """Give a message that has not ended."""
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage | {"service_tier": "standard"},
        }

    def describe_end(self, done: Done, reader: TurnReader | None) -> dict[str, Any]:
        """Give why a message ended, and at which of the client's stop sequences."""
        if done.finish_reason is FinishReason.STOP and done.stop_word in self.stop_sequences:
            return {"stop_reason": "stop_sequence", "stop_sequence": done.stop_word}
        return {"stop_reason": self._stop_reason(done, reader), "stop_sequence": None}

    def describe_prompt(self, num_cached: int) -> dict[str, Any]:
        """Count the tokens of the prompt; those that were cached are counted apart."""
        return {
            "input_tokens": self.num_prompt_tokens - num_cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": num_cached,
            "output_tokens": 0,
        }

    def describe_usage(self, done: Done) -> dict[str, Any]:
        """Count all tokens, and those of thoughts where there can be some."""
        usage = self.describe_prompt(done.num_cached_tokens)
        usage["output_tokens"] = done.num_completion_tokens
        if self.turn.reasoning is not None:
            usage["output_tokens_details"] = {"thinking_tokens": done.num_reasoning_tokens}
        return usage

    def _stop_reason(self, done: Done, reader: TurnReader | None) -> str:
        """Give the reason of an end that the client did not name; a cut call is not to be made."""
        if done.finish_reason is not FinishReason.LENGTH:
            is_called = reader is not None and reader.has_calls and reader.is_whole
            return "tool_use" if is_called else "end_turn"
        if done.truncated and done.num_completion_tokens < self.max_tokens:
            return "model_context_window_exceeded"
        return "max_tokens"
