"""Python's literals read character by character, and told as JSON."""

import json
from collections.abc import Callable

from llamero.api.turn.char_feed import CharFeed, NotACall, Waiting

Tell = Callable[[str], None]
MAX_NESTING = 64
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_WORDS = {"True": "true", "False": "false", "None": "null"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0"}
_DIGITS = {"x": 2, "u": 4, "U": 8}
_ENDS_SCALAR = frozenset(",)]}:=")


def read_python_value(feed: CharFeed, tell: Tell, nesting: int = 0) -> Waiting[None]:
    """Read the literal that comes next, telling it as it comes; what is none becomes a text."""
    char = yield from feed.skip_blanks()
    if char in "\"'":
        yield from _read_text(feed, tell)
    elif char in _CLOSING:
        if nesting >= MAX_NESTING:
            raise NotACall
        yield from _read_nested(feed, tell, nesting)
    else:
        tell(_scalar((yield from _read_bare(feed))))


def _read_nested(feed: CharFeed, tell: Tell, nesting: int) -> Waiting[None]:
    opening = yield from feed.take()
    closing, is_object = _CLOSING[opening], opening == "{"
    tell("{" if is_object else "[")
    separator = ""
    while (char := (yield from feed.skip_blanks())) != closing:
        if char == ",":
            yield from feed.take()
            continue
        tell(separator)
        separator = ", "
        if is_object:
            yield from _read_key(feed, tell)
            yield from feed.expect(":")
            tell(": ")
        yield from read_python_value(feed, tell, nesting + 1)
    yield from feed.take()
    tell("}" if is_object else "]")


def _read_key(feed: CharFeed, tell: Tell) -> Waiting[None]:
    if (yield from feed.peek()) in "\"'":
        yield from _read_text(feed, tell)
    else:
        tell(json.dumps((yield from _read_bare(feed)), ensure_ascii=False))


def _read_bare(feed: CharFeed) -> Waiting[str]:
    """Read what has no quotes, up to what can only come behind it."""
    text = ""
    while (yield from feed.peek()) not in _ENDS_SCALAR:
        text += yield from feed.take()
    if not text.strip():
        raise NotACall
    return text.strip()


def _scalar(text: str) -> str:
    """Give a word or a number as JSON has it."""
    if text in _WORDS:
        return _WORDS[text]
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError:
        return json.dumps(text, ensure_ascii=False)
    return text


def _refuse(name: str) -> None:
    raise ValueError(name)


def _read_text(feed: CharFeed, tell: Tell) -> Waiting[None]:
    quote = yield from feed.take()
    tell('"')
    half = 0
    while (char := (yield from feed.take())) != quote:
        if char == "\\":
            char = yield from _read_escape(feed)
        code = ord(char) if len(char) == 1 else 0
        if 0xD800 <= code < 0xDC00:
            half = code
            continue
        if half and 0xDC00 <= code < 0xE000:
            char = chr(0x10000 + ((half - 0xD800) << 10) + code - 0xDC00)
        elif 0xDC00 <= code < 0xE000:
            char = "\ufffd"
        half = 0
        tell(json.dumps(char, ensure_ascii=False)[1:-1])
    tell('"')


def _read_escape(feed: CharFeed) -> Waiting[str]:
    """Give what an escape means, from behind its backslash; an unknown one is what it says."""
    char = yield from feed.take()
    if char not in _DIGITS:
        return _ESCAPES.get(char, "" if char == "\n" else char)
    digits = ""
    for _ in range(_DIGITS[char]):
        digits += yield from feed.take()
    try:
        return chr(int(digits, 16))
    except (ValueError, OverflowError):
        return f"\\{char}{digits}"
