"""How much of the generated text may leave before a stop string might begin?"""

from collections.abc import Sequence


class StopMatcher:
    """Cut generated text before the leftmost stop string, however tokens split it.

    The result depends on the text alone: everything before the leftmost occurrence of any stop
    string leaves, in as early pieces as possible; only what may yet be the beginning of a stop
    string is held. Where a longer stop string that began earlier is still open, a complete one
    waits for it.
    """

    __slots__ = ("_held", "_stops", "stop_word")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.stop_word = ""

    @property
    def is_stopped(self) -> bool:
        """Whether a stop string was found; text pushed from then on is swallowed."""
        return bool(self.stop_word)

    def push(self, text: str) -> str:
        """Take new text and give the part that is free to leave."""
        if not self._stops:
            return text
        if self.stop_word:
            return ""
        held = self._held + text
        match, stop = self._find_match(held)
        limit = self._find_open(held)
        if stop and match <= limit:
            self.stop_word, self._held = stop, ""
            return held[:match]
        self._held = held[limit:]
        return held[:limit]

    def flush(self) -> str:
        """Give what is still held when no more text can come."""
        held, self._held = self._held, ""
        match, stop = self._find_match(held)
        if stop:
            self.stop_word = stop
            return held[:match]
        return held

    def _find_match(self, held: str) -> tuple[int, str]:
        """Find the leftmost complete stop string: where it begins, and which it is."""
        best, word = len(held), ""
        for stop in self._stops:
            at = held.find(stop, 0, best + len(stop) - 1)
            if at >= 0:
                best, word = at, stop
        return best, word

    def _find_open(self, held: str) -> int:
        """Find the leftmost place from which all the rest is the beginning of a stop string."""
        limit = len(held)
        for stop in self._stops:
            at = held.find(stop[0], max(0, len(held) - len(stop) + 1), limit)
            while at >= 0:
                if stop.startswith(held[at:]):
                    limit = at
                    break
                at = held.find(stop[0], at + 1, limit)
        return limit
