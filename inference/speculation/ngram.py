"""Where did the last tokens of a sequence occur before, and what came next?"""

from collections.abc import Sequence

from inference.speculation.drafter import NO_GUESS, Guess

MIN_MATCH = 2
MAX_MATCH = 16
_MAX_TRIES = 16
_SHIFT = 32


class NgramIndex:
    """All pairs of neighbours in a growing list of tokens, each linked to its last occurrence.

    A pair costs one dictionary entry and one number; nothing is ever scanned again.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tokens
        self._last: dict[int, int] = {}
        self._earlier: list[int] = []

    def catch_up(self, max_tokens: int) -> bool:
        """Index tokens that came since the last call; tells whether all are in now."""
        tokens, last, earlier = self._tokens, self._last, self._earlier
        start = len(earlier)
        end = min(len(tokens), start + max_tokens)
        if start == 0 and end:
            earlier.append(-1)
            start = 1
        before = tokens[start - 1] if start else 0
        for at in range(start, end):
            token = tokens[at]
            pair = before << _SHIFT | token
            earlier.append(last.get(pair, -1))
            last[pair] = at
            before = token
        return end == len(tokens)

    def guess(self, max_tokens: int) -> Guess:
        """Repeat what followed the longest earlier match of the end; needs to have caught up.

        The strength of the guess is the length of the match. Of equally long matches the latest
        counts. Only the latest few places where the last two tokens met are compared, over a
        bounded length, so that the cost has a bound as well.
        """
        if max_tokens <= 0:
            return NO_GUESS
        end = len(self._earlier) - 1
        at = self._earlier[end] if end > 0 else -1
        best, best_length = -1, 0
        for _ in range(_MAX_TRIES):
            if at < 0:
                break
            length = self._match_length(at, end)
            if length > best_length:
                best, best_length = at, length
                if length == MAX_MATCH:
                    break
            at = self._earlier[at]
        return Guess(self._continue(best, end, max_tokens), best_length) if best >= 0 else NO_GUESS

    def _match_length(self, at: int, end: int) -> int:
        """Count the equal tokens before and at two positions whose pairs are equal."""
        tokens = self._tokens
        limit = min(MAX_MATCH, at + 1)
        length = MIN_MATCH
        while length < limit and tokens[at - length] == tokens[end - length]:
            length += 1
        return length

    def _continue(self, at: int, end: int, max_tokens: int) -> tuple[int, ...]:
        """Read on from a match; one that reaches into itself goes round in circles."""
        period = end - at
        found = list(self._tokens[at + 1 : at + 1 + min(max_tokens, period)])
        while len(found) < max_tokens:
            found.extend(found[: max_tokens - len(found)])
        return tuple(found)
