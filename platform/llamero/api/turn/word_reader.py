"""Tells words and calls of tools apart, in what follows the reasoning."""

from collections.abc import Mapping, Sequence

from inference.text.tool_grammar import CallSyntax
from llamero.api.turn.calls import CallableTool, CallSection, CallTeller
from llamero.api.turn.marks import Marks
from llamero.api.turn.pieces import Piece, Text


class WordReader:
    """Reads words, without the marks that are to be ``dropped`` and blanks around them, and calls.

    Calls of a syntax without a trigger stand before all words.
    """

    def __init__(
        self,
        teller: CallTeller,
        syntax: CallSyntax | None,
        tools: Mapping[str, CallableTool],
        dropped: Sequence[str],
        *,
        must_call: bool,
    ) -> None:
        self._must_call = must_call
        self._teller, self._syntax, self._tools = teller, syntax, tools
        self._trigger = syntax.trigger if syntax else ""
        # What calls without a trigger begin with.
        self._first = syntax.begin.strip()[:1] or "{" if syntax else ""
        self._marks = Marks((self._trigger, *dropped))
        self._may_begin = syntax is not None and not self._trigger
        # White space before a mark goes with it, so it has to be held until more is known.
        self._holds_blanks = bool(self._trigger or dropped)
        self._drops_blanks = False
        self._held = ""
        self._gap = ""
        self._section: CallSection | None = None
        self._pieces: list[Piece] = []

    def feed(self, text: str) -> list[Piece]:
        """Take the next text; give what is certain by now."""
        self._held += text
        while self._read():
            pass
        return self._take()

    def finish(self) -> list[Piece]:
        """The text has ended: give what was held back."""
        if self._section is not None:
            self._section.finish()
            self._pieces += self._teller.take()
            self._held = self._section.unread
            self._section = None
        self._tell(self._held)
        self._held = ""
        return self._take()

    def _read(self) -> bool:
        """Read on; tell whether there may be more to read."""
        if self._section is not None:
            return self._read_section(self._section)
        if self._may_begin and self._begin_without_mark():
            return self._section is not None
        found = self._marks.find(self._held)
        if not found:
            self._tell_certain()
            return False
        at, mark = found
        if mark != self._trigger:
            self._tell(self._held[:at].rstrip())
            self._held = self._held[at + len(mark) :]
            self._drops_blanks = True
            return True
        before, self._held = self._held[:at], self._held[at:]
        words = before.rstrip()
        self._gap = before[len(words) :]
        self._tell(words)
        self._open_section()
        return True

    def _begin_without_mark(self) -> bool:
        """Tell whether calls begin here, or may with what comes next."""
        seen = self._held.lstrip()
        if seen.startswith(self._first):
            self._open_section()
        elif seen:
            self._may_begin = False
        return self._may_begin

    def _open_section(self) -> None:
        assert self._syntax is not None
        self._section = CallSection(
            self._syntax, self._tools, self._teller, must_call=self._must_call
        )

    def _read_section(self, section: CallSection) -> bool:
        text, self._held = self._held, ""
        section.feed(text)
        self._pieces += self._teller.take()
        if not section.is_done:
            return False
        self._section, self._held = None, section.unread
        if section.has_calls:
            self._drops_blanks = True
        else:
            # No calls after all: the mark itself must not be taken for a beginning again.
            self._may_begin = False
            self._tell(self._gap + self._held[: len(self._trigger)])
            self._held = self._held[len(self._trigger) :]
        return True

    def _tell_certain(self) -> None:
        """Tell all but what may become a mark, and the white space before it."""
        certain = self._held[: len(self._held) - self._marks.num_held(self._held)]
        if self._holds_blanks:
            certain = certain.rstrip()
        self._held = self._held[len(certain) :]
        self._tell(certain)

    def _tell(self, text: str) -> None:
        if self._drops_blanks:
            text = text.lstrip()
            self._drops_blanks = not text
        if text:
            self._may_begin = False
            self._pieces.append(Text(text))

    def _take(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces
