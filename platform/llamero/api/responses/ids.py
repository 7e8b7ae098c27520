"""The ids of responses and of their items: an item's id tells which response it is part of."""

import re
import secrets
from dataclasses import dataclass

MAX_ID_LENGTH = 64
_RESPONSE = re.compile(r"resp_[0-9a-f]{40}")
_ITEM = re.compile(r"[a-z]{2,3}_([0-9a-f]{40})([io])([0-9a-f]{4})")


@dataclass(frozen=True, slots=True)
class ItemPlace:
    """Where an item is: in the input of a response, or in its output."""

    response_id: str
    is_output: bool
    index: int


def make_response_id() -> str:
    """Make an id that nobody guesses."""
    return f"resp_{secrets.token_hex(20)}"


def is_response_id(text: str) -> bool:
    """Whether an id could be one of ours."""
    return _RESPONSE.fullmatch(text) is not None


def make_item_id(prefix: str, response_id: str, index: int, *, is_output: bool) -> str:
    """Name an item by its place; the same each time, so that streams can be told again."""
    side = "o" if is_output else "i"
    return f"{prefix}_{response_id.removeprefix('resp_')}{side}{index:04x}"


def read_item_id(text: str) -> ItemPlace | None:
    """Tell where an item is; None for an id that was not made here."""
    match = _ITEM.fullmatch(text)
    if match is None:
        return None
    return ItemPlace(f"resp_{match[1]}", match[2] == "o", int(match[3], 16))
