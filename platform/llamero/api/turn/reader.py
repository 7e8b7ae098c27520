"""Reads the raw text of one choice as it comes, and tells what it is made of."""

from collections.abc import Mapping
from typing import Protocol

from inference.text.tool_grammar import CallSyntax
from llamero.api.turn.calls import CallableTool, CallTeller
from llamero.api.turn.pieces import Piece
from llamero.api.turn.reasoning_reader import ReasoningReader
from llamero.api.turn.word_reader import WordReader


class TurnReader(Protocol):
    """Turns text into pieces. Nothing is lost, and no part of a mark is told as text.

    ``has_calls``: the model called a tool. ``is_whole``: each call that began has ended.
    """

    @property
    def has_calls(self) -> bool: ...

    @property
    def is_whole(self) -> bool: ...

    def feed(self, text: str) -> list[Piece]:
        """Take the next text; give what is certain by now."""
        ...

    def finish(self) -> list[Piece]:
        """Give what was held back: the text has ended."""
        ...


class MarkReader:
    """Reads turns of reasoning, if there is any, and then words and calls, all told by marks."""

    def __init__(
        self,
        teller: CallTeller,
        reasoning: ReasoningReader | None,
        syntax: CallSyntax | None,
        tools: Mapping[str, CallableTool],
        dropped: tuple[str, ...] = (),
        *,
        must_call: bool = False,
    ) -> None:
        self._teller, self._reasoning = teller, reasoning
        self._words = WordReader(teller, syntax, tools, dropped, must_call=must_call)

    @property
    def has_calls(self) -> bool:
        """Whether the model called a tool."""
        return self._teller.num_started > 0

    @property
    def is_whole(self) -> bool:
        """Whether each call that began has ended."""
        return self._teller.num_started == self._teller.num_ended

    def feed(self, text: str) -> list[Piece]:
        """Take the next text; give what is certain by now."""
        if self._reasoning is None:
            return self._words.feed(text)
        pieces, words = self._reasoning.feed(text)
        return pieces + self._words.feed(words) if words else pieces

    def finish(self) -> list[Piece]:
        """Give what was held back: the text has ended."""
        pieces: list[Piece] = []
        if self._reasoning is not None:
            pieces, words = self._reasoning.finish()
            pieces += self._words.feed(words)
        return pieces + self._words.finish()
