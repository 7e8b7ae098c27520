"""How chat messages become the prompt of one model, with control tokens from its template only."""

import re
import secrets
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import ModelFacts
from inference.protocol.text import RenderChat, Rendered
from inference.text.render_pool import RenderError, RenderPool
from inference.text.tool_messages import fit_messages


class Vocabulary(Protocol):
    """What rendering needs of a loaded model."""

    def facts(self) -> ModelFacts:
        """Describe the model."""

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Turn text into token ids."""

    def control_tokens(self) -> dict[str, int]:
        """List the texts that are parsed as control tokens."""


class ChatTemplate:
    """The chat template of a loaded model; safe to use from many threads."""

    def __init__(self, vocabulary: Vocabulary, pool: RenderPool) -> None:
        self._vocabulary = vocabulary
        self._pool = pool
        self._facts = vocabulary.facts()
        self._markers = ControlMarkers(vocabulary.control_tokens())
        start = vocabulary.tokenize("", add_special=True, parse_special=False)
        self._adds_bos = start[:1] == [self._facts.bos_token_id]

    def render(self, question: RenderChat) -> Rendered:
        """Render and tokenize messages; raises EngineError (chat_template_error)."""
        if not self._facts.chat_template:
            raise EngineError(
                ErrorCode.CHAT_TEMPLATE_ERROR,
                "This model has no chat template. Use the completions API.",
            )
        messages, tools = fit_messages(
            self._facts.chat_template, list(question.messages), list(question.tools)
        )
        shield = self._markers.shield()
        variables = shield.hide(dict(question.template_kwargs)) | {
            "tools": shield.hide(tools) or None,
            "add_generation_prompt": question.add_generation_prompt,
            "bos_token": self._facts.bos_token,
            "eos_token": self._facts.eos_token,
        }
        try:
            text = self._pool.render(self._facts.chat_template, shield.hide(messages), variables)
        except RenderError as error:
            message = shield.restore(str(error))
            raise EngineError(ErrorCode.CHAT_TEMPLATE_ERROR, message) from error
        if question.no_reasoning:
            text = close_reasoning(text, *question.no_reasoning)
        pieces = shield.split(text)
        if question.prefill:
            pieces.append((question.prefill, True))
        prompt = shield.restore(text) + question.prefill
        return Rendered(prompt=prompt, tokens=self._tokenize(pieces))

    def _tokenize(self, pieces: Sequence[tuple[str, bool]]) -> tuple[int, ...]:
        tokens: list[int] = []
        for text, is_plain in pieces:
            tokens += self._vocabulary.tokenize(text, add_special=False, parse_special=not is_plain)
        bos = self._facts.bos_token_id
        if self._adds_bos and tokens[:1] != [bos]:
            tokens.insert(0, bos)
        return tuple(tokens)


def close_reasoning(prompt: str, opening: str, closing: str) -> str:
    """Close the reasoning that a prompt has opened, as models write it that had no thought."""
    bare = prompt.rstrip()
    return f"{bare}\n\n{closing}\n\n" if bare.endswith(opening) else prompt


class ControlMarkers:
    """The texts that a tokenizer takes for control tokens."""

    def __init__(self, control_tokens: dict[str, int]) -> None:
        markers = sorted(filter(None, control_tokens), key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, markers))) if markers else None
        self.beginnings = frozenset(
            marker[:length] for marker in markers for length in range(1, len(marker))
        )
        self.longest = max(map(len, markers), default=0)

    def shield(self) -> "MarkerShield":
        """Start hiding the markers of one request."""
        return MarkerShield(self)


class MarkerShield:
    """Stand-ins for the markers in one request's strings, so that rendering keeps them apart.

    The number in a stand-in is random, so that no client can forge one; it has digits only, so
    that filters that change case leave it whole.
    """

    def __init__(self, markers: ControlMarkers) -> None:
        self._markers = markers
        self._hidden: list[str] = []
        self._nonce = str(secrets.randbits(64))
        self._stand_in = re.compile(f"\ue000{self._nonce}:([0-9]+)\ue001")

    def hide(self, value: Any) -> Any:
        """Copy a JSON value with a stand-in for each marker in its strings and keys."""
        if isinstance(value, str):
            return self._hide_in(value)
        if isinstance(value, list | tuple):
            return [self.hide(item) for item in value]
        if isinstance(value, dict):
            return {self.hide(key): self.hide(item) for key, item in value.items()}
        return value

    def restore(self, text: str) -> str:
        """Put the markers back."""
        return self._stand_in.sub(lambda match: self._hidden[int(match[1])], text)

    def split(self, text: str) -> list[tuple[str, bool]]:
        """Cut rendered text into (text, is plain) in order, without empty texts.

        A plain text has no control tokens, whatever it spells. Texts that are plain one after
        another are one: a client can write a hundred thousand markers.
        """
        judged = groupby(self._judge(text), key=itemgetter(1))
        return [("".join(piece for piece, _ in group), is_plain) for is_plain, group in judged]

    def _judge(self, text: str) -> Iterator[tuple[str, bool]]:
        """Tell of each piece between stand-ins, and of what these hide, whether it is plain."""
        pattern = self._markers.pattern
        for at, piece in enumerate(self._stand_in.split(text)):
            if at % 2:
                yield self._hidden[int(piece)], True
            elif piece:
                yield piece, pattern is None or pattern.search(piece) is None

    def _hide_in(self, text: str) -> str:
        if self._markers.pattern is None:
            return text
        text = self._markers.pattern.sub(lambda match: self._new_stand_in(match[0]), text)
        # A part of a marker at the end could be completed by whatever the template puts next.
        for length in range(min(self._markers.longest - 1, len(text)), 0, -1):
            if text[-length:] in self._markers.beginnings:
                return text[:-length] + self._new_stand_in(text[-length:])
        return text

    def _new_stand_in(self, marker: str) -> str:
        self._hidden.append(marker)
        return f"\ue000{self._nonce}:{len(self._hidden) - 1}\ue001"
