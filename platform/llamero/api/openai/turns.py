"""Turns with reasoning or calls of tools, in OpenAI's words: whole messages, and chunks."""

from collections.abc import Sequence
from typing import Any

import msgspec

from inference.protocol.events import Done, Event, TokenLogprob, Tokens
from llamero.api.collect import Choice
from llamero.api.openai.chunks import ChatDialect, OpenAIChunks
from llamero.api.openai.envelope import Envelope
from llamero.api.openai.extras import StreamExtras
from llamero.api.openai.logprobs import chat_logprobs
from llamero.api.turn import (
    CallArguments,
    CallStarted,
    Piece,
    Reasoning,
    Text,
    TurnFormat,
    finish_word,
)


class TurnShape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What turns are read as, and whether a call is told as the older ``function_call``.

    Streams that are ``is_native`` begin and fail as llama-server's do.
    """

    turn: TurnFormat
    is_legacy: bool = False
    is_native: bool = False

    @property
    def opening(self) -> str | None:
        """The content that a stream begins with: null where a turn may have no words."""
        return None if self.turn.call_style or self.is_native else ""

    def finish_reason(self, word: str) -> str:
        """Give the word of the API that the client speaks."""
        return "function_call" if self.is_legacy and word == "tool_calls" else word


def message_of(choice: Choice, shape: TurnShape) -> dict[str, Any]:
    """Give the message of a finished choice."""
    message: dict[str, Any] = {"role": "assistant", "content": choice.text, "refusal": None}
    if choice.reader is None:
        return message
    text = "".join(piece.text for piece in choice.pieces if type(piece) is Text)
    reasoning = "".join(piece.text for piece in choice.pieces if type(piece) is Reasoning)
    calls = _calls_of(choice.pieces)
    message["content"] = text or (None if calls else "")
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls and shape.is_legacy:
        message["function_call"] = calls[0]["function"]
    elif calls:
        message["tool_calls"] = calls
    return message


def _calls_of(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for piece in pieces:
        if type(piece) is CallStarted:
            function = {"name": piece.name, "arguments": ""}
            calls.append({"id": piece.id, "type": "function", "function": function})
        elif type(piece) is CallArguments:
            calls[piece.index]["function"]["arguments"] += piece.text
    return calls


class TurnChunks(OpenAIChunks):
    """Writes a run of turns as chunks, one per piece. Log-probabilities go with the next one."""

    def __init__(
        self,
        envelope: Envelope,
        shape: TurnShape,
        *,
        num_choices: int,
        include_usage: bool,
        extras: StreamExtras | None,
    ) -> None:
        super().__init__(
            envelope,
            ChatDialect(shape.opening),
            num_choices=num_choices,
            include_usage=include_usage,
            extras=extras,
            is_native=shape.is_native,
        )
        self._shape = shape
        self._readers = [shape.turn.reader(index) for index in range(num_choices)]
        self._logprobs: list[list[TokenLogprob]] = [[] for _ in range(num_choices)]

    def _write_next(self, index: int, content: Event) -> bytes:
        reader = self._readers[index]
        if type(content) is Tokens:
            self._logprobs[index] += content.logprobs
            extra = self._extras[index].beside(content) if self._extras else None
            pieces = reader.feed(content.text)
            return self._write_pieces(index, pieces, extra)
        if type(content) is Done:
            self._ends[index] = content
            pieces = reader.finish()
            if self._logprobs[index] and not pieces:
                pieces = [Text("")]
            word = self._shape.finish_reason(finish_word(content.finish_reason, reader))
            return self._write_pieces(index, pieces, None) + self._last_chunk(index, content, word)
        return b""

    def _write_pieces(self, index: int, pieces: list[Piece], extra: dict[str, Any] | None) -> bytes:
        chunks = []
        for piece in pieces:
            told, self._logprobs[index] = self._logprobs[index], []
            logprobs = chat_logprobs(told) if told else None
            chunks.append(self._chunk(index, {"delta": self._delta(piece)}, logprobs, extra=extra))
        return b"".join(chunks)

    def _delta(self, piece: Piece) -> dict[str, Any]:
        match piece:
            case Text():
                return {"content": piece.text}
            case Reasoning():
                return {"reasoning_content": piece.text}
            case CallStarted():
                function = {"name": piece.name, "arguments": ""}
                start = {"index": piece.index, "id": piece.id, "type": "function"}
            case CallArguments():
                function = {"arguments": piece.text}
                start = {"index": piece.index}
        if self._shape.is_legacy:
            return {"function_call": function}
        return {"tool_calls": [start | {"function": function}]}
