"""Streamed chunks of OpenAI's text APIs, made from prebuilt bytes around the one changing part."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from inference.protocol.events import Done, Event, PromptLogprobs, TokenLogprob, Tokens
from llamero.api.collect import place_logprobs, timings_object, usage_object
from llamero.api.openai.envelope import Envelope
from llamero.api.openai.extras import ChoiceExtras, StreamExtras
from llamero.api.openai.logprobs import LegacyLogprobs, chat_logprobs
from llamero.api.run import ChoiceEvent
from llamero.api.sse import DONE, data_line, native_error, openai_error
from llamero.api.turn import finish_word
from llamero.errors import LlameroError

encode_json = msgspec.json.Encoder().encode


class ChunkDialect(Protocol):
    """How one of the two APIs writes a piece of text."""

    object_name: str
    before_text: bytes
    after_text: bytes

    def first_piece(self, choice: int) -> dict[str, Any] | None:
        """Give the fields of the chunk that opens a choice, if there is one."""

    def judge_prompt(self, choice: int, event: PromptLogprobs) -> None:
        """Take how likely the next tokens of a prompt were."""

    def take_held(self, choice: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Give, once, what had to wait for the first word of a choice, and its likelihood."""

    def piece(self, text: str) -> dict[str, Any]:
        """Give the fields that carry text."""

    def last_piece(self) -> dict[str, Any]:
        """Give the fields of the chunk that ends a choice."""

    def logprobs(self, choice: int, entries: tuple[TokenLogprob, ...]) -> dict[str, Any]:
        """Give the log-probabilities of the next tokens of a choice."""


class ChatDialect:
    """Chat: text in ``delta.content``, the role once at the start, with an ``opening``."""

    object_name = "chat.completion.chunk"
    before_text = b'"delta":{"content":'
    after_text = b'},"logprobs":null,"finish_reason":null}]'

    def __init__(self, opening: str | None = "") -> None:
        self._opening = opening

    def first_piece(self, choice: int) -> dict[str, Any]:
        """Name the role."""
        return {"delta": {"role": "assistant", "content": self._opening}}

    def judge_prompt(self, choice: int, event: PromptLogprobs) -> None:
        """Leave it: a chat does not repeat its prompt."""

    def take_held(self, choice: int) -> None:
        """Hold nothing."""

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
    """Legacy completions: text in ``text``; ``echoes`` are the prompts to repeat.

    With ``num_logprobs`` an echo waits until the likelihood of the whole prompt is known.
    """

    object_name = "text_completion"
    before_text = b'"text":'
    after_text = b',"logprobs":null,"finish_reason":null}]'

    def __init__(
        self, *, echoes: Sequence[str] = (), num_choices: int = 1, num_logprobs: int | None = None
    ) -> None:
        self._echoes, self._num_choices = echoes, num_choices
        self._num_logprobs = num_logprobs
        self._logprobs: dict[int, LegacyLogprobs] = defaultdict(LegacyLogprobs)
        self._judged: dict[int, list[TokenLogprob]] = {}
        if echoes and num_logprobs is not None:
            self._judged = {choice: [] for choice in range(len(echoes) * num_choices)}

    def first_piece(self, choice: int) -> dict[str, Any] | None:
        """Repeat the prompt."""
        if not self._echoes or choice in self._judged:
            return None
        return {"text": self._echo(choice)}

    def judge_prompt(self, choice: int, event: PromptLogprobs) -> None:
        """Keep it until the whole prompt is judged."""
        if choice in self._judged:
            place_logprobs(self._judged[choice], event)

    def take_held(self, choice: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Repeat the prompt with its likelihood."""
        entries = self._judged.pop(choice, None)
        if entries is None:
            return None
        echo = self._echo(choice)
        return {"text": echo}, self._logprobs[choice].echo(entries, echo, self._num_logprobs or 0)

    def piece(self, text: str) -> dict[str, Any]:
        """Put the text in."""
        return {"text": text}

    def last_piece(self) -> dict[str, Any]:
        """Add nothing."""
        return {"text": ""}

    def logprobs(self, choice: int, entries: tuple[TokenLogprob, ...]) -> dict[str, Any]:
        """Give the legacy shape, offsets going on from the last chunk."""
        return self._logprobs[choice].take(entries)

    def _echo(self, choice: int) -> str:
        return self._echoes[choice // self._num_choices]


class OpenAIChunks:
    """Writes a run as chunks: one per token event, one at each choice's end, usage, ``[DONE]``."""

    def __init__(
        self,
        envelope: Envelope,
        dialect: ChunkDialect,
        *,
        num_prompts: int = 1,
        num_choices: int = 1,
        include_usage: bool = False,
        extras: StreamExtras | None = None,
        is_native: bool = False,
    ) -> None:
        self._dialect = dialect
        self._is_native = is_native
        self._num_choices = num_choices
        self._include_usage = include_usage
        self._base = envelope.document(dialect.object_name)
        self._ends: list[Done | None] = [None] * (num_prompts * num_choices)
        self._extras: list[ChoiceExtras] = []
        if extras is not None:
            self._extras = [ChoiceExtras(extras, index) for index in range(len(self._ends))]
        head = b"data: " + encode_json(self._base)[:-1] + b',"choices":[{"index":'
        self._before = [
            head + b"%d," % index + dialect.before_text for index in range(len(self._ends))
        ]
        usage = b',"usage":null' if include_usage else b""
        self._after = dialect.after_text + usage + b"}\n\n"

    def start(self) -> bytes:
        """Open every choice."""
        return b"".join(
            self._chunk(index, piece)
            for index in range(len(self._ends))
            if (piece := self._dialect.first_piece(index)) is not None
        )

    def write(self, event: ChoiceEvent) -> bytes:
        """Write text as soon as there is some; measured per token, so built from bytes."""
        index, content = event
        if type(content) is PromptLogprobs:
            self._dialect.judge_prompt(index, content)
            return b""
        if self._extras and (told := self._extras[index].note(content)) is not None:
            return self._chunk(index, self._dialect.piece(""), extra=told)
        held = b""
        if type(content) in (Tokens, Done) and (pair := self._dialect.take_held(index)):
            held = self._chunk(index, *pair)
        return held + self._write_next(index, content)

    def _write_next(self, index: int, content: Event) -> bytes:
        if type(content) is Tokens:
            extra = self._extras[index].beside(content) if self._extras else None
            if content.logprobs:
                logprobs = self._dialect.logprobs(index, content.logprobs)
                return self._chunk(index, self._dialect.piece(content.text), logprobs, extra=extra)
            if not content.text:
                return b""
            if extra:
                return self._chunk(index, self._dialect.piece(content.text), extra=extra)
            return self._before[index] + encode_json(content.text) + self._after
        if type(content) is Done:
            self._ends[index] = content
            return self._last_chunk(index, content, finish_word(content.finish_reason))
        return b""

    def _last_chunk(self, index: int, done: Done, reason: str) -> bytes:
        extra = {"timings": timings_object(done)}
        return self._chunk(index, self._dialect.last_piece(), None, reason, extra)

    def end(self) -> bytes:
        """Tell the usage if it was asked for, and end."""
        if not self._include_usage:
            return DONE
        ends = [end for end in self._ends if end is not None]
        usage = {"usage": usage_object(ends, self._num_choices)}
        if len(ends) == 1:
            usage["timings"] = timings_object(ends[0])
        return data_line(self._base | {"choices": []} | usage) + DONE

    def fail(self, error: LlameroError) -> bytes:
        """Give the error, without ``[DONE]``."""
        return native_error(error) if self._is_native else openai_error(error)

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
