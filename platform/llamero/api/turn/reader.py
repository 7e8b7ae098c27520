"""Reads the raw text of one choice as it comes, and tells what it is made of."""

from typing import Protocol

from llamero.api.turn.pieces import Piece, Reasoning, Text


class TurnReader(Protocol):
    """Turns text into pieces; nothing is lost, and no part of a marker is told as text."""

    num_reasoning_tokens: int

    @property
    def has_calls(self) -> bool:
        """Whether the model called a tool."""
        ...

    def feed(self, text: str, num_tokens: int = 0) -> list[Piece]:
        """Take the next text, of so many tokens; give what is certain by now."""
        ...

    def finish(self) -> list[Piece]:
        """Give what was held back: the text has ended."""
        ...


class ReasoningReader:
    """Tells reasoning between two tags at the beginning of a text from the rest of it."""

    has_calls = False

    def __init__(self, opening: str, closing: str, *, is_open: bool) -> None:
        self.num_reasoning_tokens = 0
        self._opening, self._closing = opening, closing
        self._held = ""
        self._is_open, self._may_open = is_open, not is_open
        self._is_blank = True

    def feed(self, text: str, num_tokens: int = 0) -> list[Piece]:
        """Take the next text, of so many tokens; give what is certain by now."""
        was_open = self._is_open
        self._held += text
        pieces: list[Piece] = []
        if self._may_open:
            self._try_opening()
        if self._is_open:
            pieces += self._read_reasoning()
        if not self._is_open and not self._may_open:
            pieces += self._read_text()
        if was_open or self._is_open:
            self.num_reasoning_tokens += num_tokens
        return pieces

    def finish(self) -> list[Piece]:
        """Give what was held back: the text has ended."""
        held, self._held = self._held, ""
        if not held:
            return []
        return [Reasoning(held) if self._is_open else Text(held)]

    def _try_opening(self) -> None:
        seen = self._held.lstrip()
        if seen.startswith(self._opening):
            self._held = seen[len(self._opening) :].lstrip("\n")
            self._is_open, self._may_open = True, False
        elif not self._opening.startswith(seen):
            self._may_open = False

    def _read_reasoning(self) -> list[Piece]:
        before, tag, after = self._held.partition(self._closing)
        if tag:
            self._is_open, self._held = False, after
        else:
            before, self._held = split_held(self._held, self._closing)
        return [Reasoning(before)] if before else []

    def _read_text(self) -> list[Piece]:
        text, self._held = self._held, ""
        if self._is_blank:
            text = text.lstrip("\n")
        self._is_blank = self._is_blank and not text
        return [Text(text)] if text else []


def split_held(text: str, marker: str) -> tuple[str, str]:
    """Cut off the end of a text that could be the beginning of a marker."""
    for length in range(min(len(marker) - 1, len(text)), 0, -1):
        if marker.startswith(text[-length:]):
            return text[:-length], text[-length:]
    return text, ""
