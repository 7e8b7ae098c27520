"""JSON values read character by character: where does each end?"""

import json
from collections.abc import Callable

from llamero.api.turn.char_feed import CharFeed, NotACall, Waiting

Tell = Callable[[str], None]
_SCALAR = frozenset("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def read_value(feed: CharFeed, tell: Tell) -> Waiting[None]:
    """Read the value that comes next, telling its text as it comes."""
    char = yield from feed.skip_blanks()
    if char == '"':
        yield from _read_string(feed, tell)
    elif char in "{[":
        yield from _read_nested(feed, tell)
    elif char in _SCALAR:
        while char in _SCALAR:
            tell((yield from feed.take()))
            char = yield from feed.peek()
    else:
        raise NotACall


def read_string(feed: CharFeed) -> Waiting[str]:
    """Read the string that comes next; raises NotACall where there is none."""
    if (yield from feed.skip_blanks()) != '"':
        raise NotACall
    parts: list[str] = []
    yield from _read_string(feed, parts.append)
    try:
        return str(json.loads("".join(parts), strict=False))
    except ValueError:
        raise NotACall from None


def _read_string(feed: CharFeed, tell: Tell) -> Waiting[None]:
    tell((yield from feed.take()))
    while (char := (yield from feed.take())) != '"':
        tell(char)
        if char == "\\":
            tell((yield from feed.take()))
    tell(char)


def _read_nested(feed: CharFeed, tell: Tell) -> Waiting[None]:
    depth = 0
    while True:
        char = yield from feed.peek()
        if char == '"':
            yield from _read_string(feed, tell)
            continue
        tell((yield from feed.take()))
        depth += (char in "{[") - (char in "}]")
        if depth == 0:
            return
