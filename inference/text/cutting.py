"""Where can a long text be cut so that its parts make the same tokens as the whole?

llama.cpp's splitters recurse once per character of a word, so that a word of a megabyte ends the
process; its search for control tokens takes the square of their number, and so do characters that
a vocabulary spells by bytes. A text is therefore handed to it in parts. Where a part has no safe
place to end, it ends anywhere: the tokens still spell the same text, with other borders within
one giant word.
"""

import re
from collections.abc import Iterator, Sequence

MAX_CHARS = 32 * 1024
# Every tokenizer that splits words begins a new one at each of these places.
_BORDERS = (
    re.compile(r"(?<=[^\W\d_])(?= [^\W\d_])"),
    re.compile(r"(?<=\n)(?=[^\W\d_])"),
    re.compile(r"(?<=[^\W\d_])(?=[、。！，：；？])"),  # noqa: RUF001 - Chinese punctuation is meant
)


class TextCutter:
    """Cuts texts for one tokenizer, whose control tokens are never cut in two."""

    def __init__(self, markers: Sequence[str]) -> None:
        ordered = sorted(filter(None, markers), key=len, reverse=True)
        self._markers = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._longest = max(map(len, ordered), default=0)

    def cut(self, text: str) -> Iterator[str]:
        """Give the parts of a text in order; a short one is whole."""
        start = 0
        while len(text) - start > MAX_CHARS:
            end = self._find_end(text, start)
            yield text[start:end]
            start = end
        if start < len(text) or not text:
            yield text[start:]

    def _find_end(self, text: str, start: int) -> int:
        limit = start + MAX_CHARS
        for border in _BORDERS:
            ends = [found.start() for found in border.finditer(text, limit - MAX_CHARS // 4, limit)]
            whole = [end for end in ends[-3:] if self._outside_markers(text, end) == end]
            if whole:
                return whole[-1]
        return self._outside_markers(text, limit)

    def _outside_markers(self, text: str, end: int) -> int:
        """Move an end that lies within a marker to where the marker begins."""
        if self._markers is None:
            return end
        for found in self._markers.finditer(text, end - self._longest, end + self._longest):
            if found.start() < end < found.end():
                return found.start()
        return end
