"""Gather what is wrong in a file, so that it can be mended in one go."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ValidationError

MAX_TOLD = 100
_BORDER = re.compile(r"[.\[]")
_ENTRY = re.compile(r"(models|keys)\[(\d+)\]")


class ApplyError(Exception):
    """What is wrong, and where: ``place`` is a path as models[0].deployments[1].num_slots.

    ``found`` has each mistake's place and words, where several were gathered.
    """

    def __init__(self, place: str, words: str) -> None:
        super().__init__(_line(place, words))
        self.found = [(place, words)]

    @property
    def lines(self) -> list[str]:
        """Give each mistake as a line; of very many the first ones."""
        lines = [_line(place, words) for place, words in self.found[:MAX_TOLD]]
        if len(self.found) > MAX_TOLD:
            lines.append(f"and more: these are the first {MAX_TOLD}")
        return lines


class Mistakes:
    """What was found so far, each place once.

    A field that could not be read is left empty to go on with, and would be told again as empty.
    """

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._around: set[str] = set()

    def add(self, place: str, words: str) -> None:
        """Note a mistake, unless one of this place, of one in it or around it is known.

        Raises ApplyError with all of them when nobody would read more: each takes time to find.
        """
        around = [place[: match.start()] for match in _BORDER.finditer(place)]
        if place in self._around or any(one in self._found for one in (place, *around)):
            return
        self._found[place] = words
        self._around.update(around)
        if len(self._found) > MAX_TOLD:
            self.tell()

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Go on behind the block although something in it is wrong."""
        try:
            yield
        except ApplyError as error:
            for place, words in error.found:
                self.add(place, words)

    def tell(self) -> None:
        """Raise ApplyError with all that was gathered, entry by entry, if there is any."""
        if self._found:
            error = ApplyError("", "")
            error.found = sorted(self._found.items(), key=_entry_of)
            raise error


def place_of(error: ValidationError, place: str) -> ApplyError:
    """Say where values are wrong that Django has judged."""
    if not hasattr(error, "error_dict"):
        return ApplyError(place, " ".join(error.messages))
    told = ApplyError(place, "")
    told.found = [
        (place if name == "__all__" else f"{place}.{name}", " ".join(messages))
        for name, messages in error.message_dict.items()
    ]
    return told


def _line(place: str, words: str) -> str:
    return f"{place}: {words}" if place else words


def _entry_of(mistake: tuple[str, str]) -> tuple[int, int]:
    found = _ENTRY.match(mistake[0])
    if found is None:
        return 0, 0
    return ("models", "keys").index(found[1]) + 1, int(found[2])
