"""The pieces of an answer as Anthropic's content blocks: their names, ids and signatures."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from llamero.api.turn import CallArguments, CallStarted, Piece, Reasoning, Text

_PREFIX = "toolu_"
_OWN_ID = re.compile(r"toolu_([0-9a-f]{24})")


def tool_use_id(call_id: str) -> str:
    """Give the id of a call, spelled as Anthropic's are."""
    return _PREFIX + call_id.removeprefix("call_")


def call_id(tool_use_id: str) -> str:
    """Give the id that a template knows a call by: some models' have a form of their own."""
    own = _OWN_ID.fullmatch(tool_use_id)
    return f"call_{own[1]}" if own else tool_use_id.removeprefix(_PREFIX)


def open_tool_use(piece: CallStarted) -> dict[str, Any]:
    """Give the block of a call whose arguments are still to come."""
    return {"type": "tool_use", "id": tool_use_id(piece.id), "name": piece.name, "input": {}}


class Signature:
    """The seal of a thinking block: clients keep what they were told only where there is one.

    It proves nothing, as nothing here depends on who wrote a thought that comes back.
    """

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=24)

    def update(self, text: str) -> None:
        """Take more of the thought."""
        self._digest.update(text.encode())

    def __str__(self) -> str:
        return b64encode(self._digest.digest()).decode()


def make_blocks(pieces: Iterable[Piece], *, hides_thinking: bool) -> list[dict[str, Any]]:
    """Give the blocks of a whole answer; pieces of a kind in a row are one block."""
    blocks: list[dict[str, Any]] = []
    arguments: dict[int, str] = {}
    for piece in pieces:
        kind = blocks[-1]["type"] if blocks else ""
        match piece:
            case Text(text):
                if kind != "text":
                    blocks.append({"type": "text", "text": ""})
                blocks[-1]["text"] += text
            case Reasoning(text):
                if kind != "thinking":
                    blocks.append({"type": "thinking", "thinking": ""})
                blocks[-1]["thinking"] += text
            case CallStarted():
                blocks.append(open_tool_use(piece))
            case CallArguments(text=text):
                place = len(blocks) - 1
                arguments[place] = arguments.get(place, "") + text
    for place, text in arguments.items():
        blocks[place]["input"] = _read_arguments(text)
    for block in blocks:
        if block["type"] == "thinking":
            _seal(block, hides_thinking)
    return blocks


def _seal(block: dict[str, Any], hides_thinking: bool) -> None:
    signature = Signature()
    signature.update(block["thinking"])
    block["signature"] = str(signature)
    if hides_thinking:
        block["thinking"] = ""


def _read_arguments(text: str) -> dict[str, Any]:
    """Read the arguments of a call; of one that a limit cut off nothing is told."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
