"""Characters that come in parts, for parsers that are generators: they wait by yielding."""

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")
Waiting = Generator[None, None, Result]
"""A parser that yields whenever it needs more text, and returns what it found."""


class NotACall(Exception):
    """The text is not what a call looks like."""


class CharFeed:
    """The characters of a text, each once."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0

    def put(self, text: str) -> None:
        """Add text that has come."""
        self._text = self._text[self._at :] + text
        self._at = 0

    def rest(self) -> str:
        """Take all that is left."""
        rest, self._text, self._at = self._text[self._at :], "", 0
        return rest

    def peek(self) -> Waiting[str]:
        """Give the next character and leave it there."""
        while self._at == len(self._text):
            yield
        return self._text[self._at]

    def take(self) -> Waiting[str]:
        """Give the next character."""
        char = yield from self.peek()
        self._at += 1
        return char

    def skip_blanks(self) -> Waiting[str]:
        """Pass over white space; give the character behind it and leave it there."""
        while (char := (yield from self.peek())).isspace():
            self._at += 1
        return char

    def expect(self, *literals: str) -> Waiting[str]:
        """Read one of some texts, white space aside; raises NotACall, all unread, otherwise."""
        bare = {"".join(literal.split()): literal for literal in literals}
        seen, passed = "", ""
        while seen not in bare:
            char = yield from self.peek()
            self._at += 1
            passed += char
            seen += char.strip()
            if not any(text.startswith(seen) for text in bare):
                self._text, self._at = passed + self._text[self._at :], 0
                raise NotACall
        return bare[seen]

    def take_until(self, mark: str, most: int) -> Waiting[str]:
        """Read up to a mark, and the mark; raises NotACall where it is not within ``most``."""
        text = ""
        while not text.endswith(mark):
            if len(text) >= most:
                raise NotACall
            text += yield from self.take()
        return text.removesuffix(mark)
