"""Streamed chunks of OpenAI's text APIs, made from prebuilt bytes around the one changing part."""

from typing import Any, Protocol

import msgspec

from inference.protocol.events import Done, TokenLogprob, Tokens
from llamero.api.collect import FINISH_WORDS, timings_object, usage_object
from llamero.api.openai.envelope import Envelope
from llamero.api.openai.logprobs import LegacyLogprobs, chat_logprobs
from llamero.api.run import ChoiceEvent
from llamero.api.sse import DONE, data_line

encode_json = msgspec.json.Encoder().encode


class ChunkDialect(Protocol):
    """How one of the two APIs writes a piece of text."""

    object_name: str
    before_text: bytes
    after_text: bytes

    def first_piece(self) -> dict[str, Any] | None:
        """Give the fields of the chunk that opens a choice, if there is one."""

    def piece(self, text: str) -> dict[str, Any]:
        """Give the fields that carry text."""

    def last_piece(self) -> dict[str, Any]:
        """Give the fields of the chunk that ends a choice."""

    def logprobs(self, choice: int, entries: tuple[TokenLogprob, ...]) -> dict[str, Any]:
        """Give the log-probabilities of the next tokens of a choice."""


class ChatDialect:
    """Chat: text in ``delta.content``, the role once at the start."""

    object_name = "chat.completion.chunk"
    before_text = b'"delta":{"content":'
    after_text = b'},"logprobs":null,"finish_reason":null}]'

    def first_piece(self) -> dict[str, Any]:
        """Name the role."""
        return {"delta": {"role": "assistant", "content": ""}}

    def piece(self, text: str) -> dict[str, Any]:
        """Put the text in the delta."""
        return {"delta": {"content": text}}

    def last_piece(self) -> dict[str, Any]:
        """Add nothing."""
        return {"delta": {}}

    def logprobs(self, choice: int, entries: tuple[TokenLogprob, ...]) -> dict[str, Any]:
        """Give the chat shape."""
        return chat_logprobs(entries)


class TextDialect:
    """Legacy completions: text in ``text``; ``echoes`` are the prompts to repeat, per choice."""

    object_name = "text_completion"
    before_text = b'"text":'
    after_text = b',"logprobs":null,"finish_reason":null}]'

    def __init__(self) -> None:
        self._logprobs: dict[int, LegacyLogprobs] = {}

    def first_piece(self) -> None:
        """Have none."""

    def piece(self, text: str) -> dict[str, Any]:
        """Put the text in."""
        return {"text": text}

    def last_piece(self) -> dict[str, Any]:
        """Add nothing."""
        return {"text": ""}

    def logprobs(self, choice: int, entries: tuple[TokenLogprob, ...]) -> dict[str, Any]:
        """Give the legacy shape, offsets going on from the last chunk."""
        return self._logprobs.setdefault(choice, LegacyLogprobs()).take(entries)


class OpenAIChunks:
    """Writes a run as chunks: one per token event, one at each choice's end, usage, ``[DONE]``."""

    is_native = False

    def __init__(
        self,
        envelope: Envelope,
        dialect: ChunkDialect,
        *,
        num_prompts: int = 1,
        num_choices: int = 1,
        include_usage: bool = False,
        echoes: tuple[str, ...] = (),
    ) -> None:
        self._dialect = dialect
        self._num_choices = num_choices
        self._include_usage = include_usage
        self._echoes = echoes
        self._base = envelope.document(dialect.object_name)
        self._ends: list[Done | None] = [None] * (num_prompts * num_choices)
        head = b"data: " + encode_json(self._base)[:-1] + b',"choices":[{"index":'
        self._before = [
            head + b"%d," % index + dialect.before_text for index in range(len(self._ends))
        ]
        usage = b',"usage":null' if include_usage else b""
        self._after = dialect.after_text + usage + b"}\n\n"

    def start(self) -> bytes:
        """Open every choice."""
        chunks = []
        for index in range(len(self._ends)):
            if (piece := self._dialect.first_piece()) is not None:
                chunks.append(self._chunk(index, piece))
            if self._echoes:
                echo = self._dialect.piece(self._echoes[index // self._num_choices])
                chunks.append(self._chunk(index, echo))
        return b"".join(chunks)

    def write(self, event: ChoiceEvent) -> bytes:
        """Write text as soon as there is some; measured per token, so built from bytes."""
        index, content = event
        if type(content) is Tokens:
            if content.logprobs:
                logprobs = self._dialect.logprobs(index, content.logprobs)
                return self._chunk(index, self._dialect.piece(content.text), logprobs)
            if not content.text:
                return b""
            return self._before[index] + encode_json(content.text) + self._after
        if type(content) is Done:
            self._ends[index] = content
            reason = FINISH_WORDS[content.finish_reason]
            extra = {"timings": timings_object(content)}
            return self._chunk(index, self._dialect.last_piece(), None, reason, extra)
        return b""

    def end(self) -> bytes:
        """Tell the usage if it was asked for, and end."""
        if not self._include_usage:
            return DONE
        ends = [end for end in self._ends if end is not None]
        usage = usage_object(ends, self._num_choices)
        return data_line(self._base | {"choices": [], "usage": usage}) + DONE

    def _chunk(
        self,
        index: int,
        piece: dict[str, Any],
        logprobs: dict[str, Any] | None = None,
        finish_reason: str | None = None,
        extra: dict[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": index, **piece, "logprobs": logprobs, "finish_reason": finish_reason}
        document = self._base | {"choices": [choice]} | (extra or {})
        if self._include_usage:
            document["usage"] = None
        return data_line(document)
