"""Ends a text before the first line that is not indented enough."""


class IndentRule:
    """Follows a text piece by piece. The first line is never judged: it goes on from the prompt.

    An empty line counts as one without indentation, as at llama-server.
    """

    def __init__(self, min_indent: int) -> None:
        self.is_broken = False
        self._min_indent = min_indent
        self._is_at_start = False
        self._blanks = ""

    def push(self, text: str) -> str:
        """Take more text; give what may be told of it: blanks wait until they are enough."""
        told: list[str] = []
        for letter in text:
            if self.is_broken:
                break
            told.append(self._take(letter))
        return "".join(told)

    def flush(self) -> str:
        """Give the blanks that wait: no text came behind them."""
        held, self._blanks = self._blanks, ""
        return held

    def _take(self, letter: str) -> str:
        if not self._is_at_start:
            self._is_at_start = letter == "\n"
            return letter
        if letter in " \t":
            self._blanks += letter
            if len(self._blanks) < self._min_indent:
                return ""
            self._is_at_start = False
            return self.flush()
        self.is_broken = True
        return self.flush()
