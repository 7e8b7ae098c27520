"""Tells the reasoning at the beginning of a turn from what follows it."""

from llamero.api.turn.marks import Marks
from llamero.api.turn.pieces import Piece, Reasoning, Text


class ReasoningReader:
    """Reads reasoning between two marks; all behind it is passed on.

    Reasoning that is not ``is_apart`` is told as words, marks and all. Where the prompt has the
    opening mark already some models write it once more.
    """

    def __init__(self, opening: str, closing: str, *, is_open: bool, is_apart: bool) -> None:
        self._opening, self._closing = opening, closing
        self._closing_marks = Marks((closing,))
        self._is_opened_by_prompt = is_open
        self._is_open, self._is_over = False, False
        self._is_apart = is_apart
        self._held = ""
        self._is_blank = True

    def feed(self, text: str) -> tuple[list[Piece], str]:
        """Take the next text; give what of it is reasoning, and what comes after."""
        if self._is_over and not self._is_blank:
            return [], text
        self._held += text
        pieces: list[Piece] = []
        if not self._is_open and not self._is_over:
            pieces += self._read_opening()
        if self._is_open:
            pieces += self._read_reasoning()
        return pieces, self._take_rest() if self._is_over else ""

    def finish(self) -> tuple[list[Piece], str]:
        """The text has ended: give what was held back."""
        held, self._held = self._held, ""
        if not self._is_open and not self._is_opened_by_prompt:
            return [], held
        is_nothing = not held.strip() if self._is_apart else not held
        return ([] if is_nothing or self._is_over else [self._piece(held)]), ""

    def _read_opening(self) -> list[Piece]:
        seen = self._held.lstrip()
        if seen.startswith(self._opening):
            self._is_open = True
            self._held = seen[len(self._opening) :]
            return [] if self._is_apart else [Text(self._opening)]
        if not self._opening.startswith(seen):
            self._is_open = self._is_opened_by_prompt
            self._is_over = not self._is_open
            self._is_blank = self._is_open
        return []

    def _read_reasoning(self) -> list[Piece]:
        if self._is_apart and self._is_blank:
            self._held = self._held.lstrip()
            self._is_blank = not self._held
        found = self._closing_marks.find(self._held)
        if found:
            text, self._held = self._held[: found[0]], self._held[found[0] + len(found[1]) :]
            self._is_open, self._is_over, self._is_blank = False, True, self._is_apart
            if not self._is_apart:
                return [Text(text + self._closing)]
            text = text.rstrip()
        else:
            text = self._held[: len(self._held) - self._closing_marks.num_held(self._held)]
            # White space before the closing mark is no part of the reasoning.
            text = text.rstrip() if self._is_apart else text
            self._held = self._held[len(text) :]
        return [self._piece(text)] if text else []

    def _take_rest(self) -> str:
        rest, self._held = self._held, ""
        if self._is_blank:
            rest = rest.lstrip()
            self._is_blank = not rest
        return rest

    def _piece(self, text: str) -> Piece:
        return Reasoning(text) if self._is_apart else Text(text)
