"""Reads turns in channels (gpt-oss): each part has a header that tells what it is.

A part is ``header <|message|> body``, ended by ``<|end|>`` and ``<|start|>``, or by the header of
the next. The prompt ends within the first header.
"""

import re
from collections.abc import Mapping

from inference.text.reasoning_counter import CHANNEL_BODY, CHANNEL_ENDS, MAX_CHANNEL_HEADER
from llamero.api.turn.calls import CallableTool, CallTeller
from llamero.api.turn.marks import Marks
from llamero.api.turn.pieces import Piece, Reasoning, Text

_HEADER_BEGINNINGS = ("<|", "to=")
_SPEAKER = "assistant"
_RECIPIENT = re.compile(r"to=functions\.([A-Za-z0-9_.-]+)")
_REASONING = re.compile(r"<\|channel\|>\s*analysis")


class HarmonyReader:
    """Tells the channel ``analysis`` as reasoning, what goes to functions as calls, all else as
    words; reasoning as words too where it is not ``is_apart``.
    """

    def __init__(
        self, teller: CallTeller, tools: Mapping[str, CallableTool], *, is_apart: bool
    ) -> None:
        self._teller, self._tools, self._is_apart = teller, tools, is_apart
        self._header_marks = Marks((CHANNEL_BODY,))
        self._body_marks = Marks(CHANNEL_ENDS)
        self._is_header, self._has_parts = True, False
        self._is_reasoning, self._is_call = False, False
        self._held = ""

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
        self._held += text
        pieces: list[Piece] = []
        while (told := self._read()) is not None:
            pieces += told
        return pieces

    def finish(self) -> list[Piece]:
        """Give what was held back: the text has ended."""
        held, self._held = self._held, ""
        if not self._is_header:
            pieces = self._tell(held)
            self._end_part()
            return pieces
        # What has no header at all is words; the beginning of one is none.
        words = held.partition(_SPEAKER)[2] if self._has_parts else held
        is_header = "<|" in words or words.lstrip().startswith(_HEADER_BEGINNINGS)
        return [] if is_header or not words.strip() else [Text(words)]

    def _read(self) -> list[Piece] | None:
        """Read on; None where nothing more is certain."""
        found = (self._header_marks if self._is_header else self._body_marks).find(self._held)
        if self._is_header:
            if not found:
                return self._begin_without_header()
            header, self._held = self._held[: found[0]], self._held[found[0] + len(CHANNEL_BODY) :]
            return self._begin_part(header)
        if not found:
            certain = len(self._held) - self._body_marks.num_held(self._held)
            text, self._held = self._held[:certain], self._held[certain:]
            return self._tell(text) or None
        at, mark = found
        text = self._held[:at]
        # A header may begin with the mark that ends the body before it.
        self._held = self._held[at if mark == "<|channel|>" else at + len(mark) :]
        pieces = self._tell(text)
        self._end_part()
        return pieces

    def _begin_without_header(self) -> list[Piece] | None:
        """Take for words what is no header: some models write none. None while it may be one."""
        seen = self._held.lstrip()
        may_begin = self._has_parts or not seen
        may_begin = may_begin or any(one.startswith(seen[: len(one)]) for one in _HEADER_BEGINNINGS)
        if may_begin and len(seen) <= MAX_CHANNEL_HEADER:
            return None
        self._is_header, self._has_parts = False, True
        return []

    def _begin_part(self, header: str) -> list[Piece]:
        self._is_header, self._has_parts = False, True
        recipient = _RECIPIENT.search(header)
        self._is_call = recipient is not None and recipient[1] in self._tools
        self._is_reasoning = recipient is None and _REASONING.search(header) is not None
        if recipient and self._is_call:
            self._teller.start(recipient[1])
            return self._teller.take()
        return []

    def _end_part(self) -> None:
        if self._is_call:
            self._teller.end()
        self._is_header, self._is_call, self._is_reasoning = True, False, False

    def _tell(self, text: str) -> list[Piece]:
        if not text:
            return []
        if self._is_call:
            self._teller.add(text)
            return self._teller.take()
        return [Reasoning(text) if self._is_reasoning and self._is_apart else Text(text)]
