"""How much of the generated text may leave before a stop string might begin?"""

from collections.abc import Sequence
from functools import lru_cache


class StopMatcher:
    """Cut generated text before the leftmost stop string, however tokens split it.

    The result depends on the text alone: everything before the leftmost occurrence of any stop
    string leaves, in as early pieces as possible; only what may yet be the beginning of a stop
    string is held. Where a longer stop string that began earlier is still open, a complete one
    waits for it; of those that begin at the same place the shortest counts.

    Each character is looked at a few times per stop string, whatever the text and the stop
    strings: it runs on the engine's thread, and clients choose both.
    """

    __slots__ = ("_found", "_found_at", "_held", "_searches", "stop_word")

    def __init__(self, stops: Sequence[str]) -> None:
        self._searches = [_Search(stop) for stop in stops if stop]
        self._held = ""
        self._found, self._found_at = "", 0
        self.stop_word = ""

    @property
    def is_stopped(self) -> bool:
        """Whether a stop string was found; text pushed from then on is swallowed."""
        return bool(self.stop_word)

    def push(self, text: str) -> str:
        """Take new text and give the part that is free to leave."""
        if not self._searches:
            return text
        if self.stop_word:
            return ""
        num_held = len(self._held)
        held = self._held + text
        open_at = len(held)
        for search in self._searches:
            num_read = search.read(text)
            if num_read < 0:
                open_at = min(open_at, len(held) - search.num_matched)
            else:
                self._note(search.stop, num_held + num_read - len(search.stop))
        if self._found and self._found_at <= open_at:
            self.stop_word, self._held = self._found, ""
            return held[: self._found_at]
        self._held = held[open_at:]
        self._found_at -= open_at
        return held[:open_at]

    def flush(self) -> str:
        """Give what is still held when no more text can come."""
        held, self._held = self._held, ""
        if not self._found:
            return held
        self.stop_word = self._found
        return held[: self._found_at]

    def _note(self, stop: str, at: int) -> None:
        """Keep the leftmost complete stop string; at one place the one that was complete first."""
        if not self._found or (at, len(stop)) < (self._found_at, len(self._found)):
            self._found, self._found_at = stop, at


class _Search:
    """Looks for the first occurrence of one stop string (the algorithm of Knuth, Morris, Pratt).

    ``num_matched`` is the length of its longest beginning that the text so far ends with.
    """

    __slots__ = ("_retries", "num_matched", "stop")

    def __init__(self, stop: str) -> None:
        self.stop = stop
        self.num_matched = 0
        self._retries = _find_retries(stop)

    def read(self, text: str) -> int:
        """Read on; tells how much was read when the stop string was complete, -1 if it is not."""
        stop, retries, num_matched = self.stop, self._retries, self.num_matched
        at = 0
        while at < len(text):
            if not num_matched:
                at = text.find(stop[0], at)
                if at < 0:
                    break
            letter = text[at]
            while num_matched >= 0 and stop[num_matched] != letter:
                num_matched = retries[num_matched]
            num_matched += 1
            at += 1
            if num_matched == len(stop):
                self.num_matched = 0
                return at
        self.num_matched = num_matched
        return -1


@lru_cache(maxsize=256)
def _find_retries(stop: str) -> tuple[int, ...]:
    """Tell for each place of a stop string where to try the character that did not fit there.

    -1: the text has to begin anew behind it. Places with the same character are left out: so the
    chain from any place is as long as the logarithm of the stop string at most.
    """
    retries = [-1] * len(stop)
    border = 0
    for place in range(1, len(stop)):
        is_alike = stop[place] == stop[border]
        retries[place] = retries[border] if is_alike else border
        while border >= 0 and stop[place] != stop[border]:
            border = retries[border]
        border += 1
    return tuple(retries)
