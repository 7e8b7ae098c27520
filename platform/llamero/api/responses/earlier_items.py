"""The items that a request takes from stored responses, within bounds.

A request of a few bytes can mean a thousand responses, or one large item ten thousand times.
"""

import msgspec

from llamero.accounts.selectors import Caller
from llamero.api.responses.contents import items_of, outcome_of, question_of
from llamero.api.responses.ids import ItemPlace, read_item_id
from llamero.api.responses.items import MAX_ITEMS, REFERENCE, Item
from llamero.api.responses.lookup import PREVIOUS, find_conversation, may_read
from llamero.conversations.selectors import find_response
from llamero.errors import InvalidValue

MAX_EARLIER_BYTES = 8 * 2**20
"""Twice what one body may bring; far more than any context holds."""

_encode = msgspec.json.Encoder().encode
_Side = tuple[str, bool]


class EarlierItems:
    """Reads stored items for one request. Each side of a response is read once, and charged whole.

    Log-probabilities bring nothing into a prompt: they are neither kept nor charged.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._num_bytes_left = MAX_EARLIER_BYTES
        self._num_items_left = MAX_ITEMS
        self._known: dict[_Side, dict[str, Item]] = {}

    def read_conversation(self, response_id: str) -> list[Item]:
        """Give all items of a conversation that ends with this response, the oldest first."""
        items: list[Item] = []
        for row in find_conversation(response_id, self._caller):
            added = _plain(items_of(row))
            self._charge(added, PREVIOUS)
            items += added
        return items

    def resolve(self, items: list[Item]) -> list[Item]:
        """Put the items that references mean in their place."""
        return [
            self._find(item["id"], f"input[{i}].id") if item["type"] == REFERENCE else item
            for i, item in enumerate(items)
        ]

    def _find(self, item_id: str, path: str) -> Item:
        place = read_item_id(item_id)
        match = None if place is None else self._read_side(place, path).get(item_id)
        if match is None:
            message = f"{path}: there is no item with the id {item_id!r:.80}."
            raise InvalidValue(path, message, "item_not_found")
        self._charge([match], path)
        return match

    def _read_side(self, place: ItemPlace, path: str) -> dict[str, Item]:
        side = (place.response_id, place.is_output)
        if side not in self._known:
            items = _plain(self._load(place))
            self._charge(items, path)
            # Of two items with one id the first is meant.
            self._known[side] = {item["id"]: item for item in reversed(items)}
        return self._known[side]

    def _load(self, place: ItemPlace) -> list[Item]:
        row = find_response(place.response_id, self._caller.owner)
        if row is None or not may_read(row, self._caller):
            return []
        if not place.is_output:
            return question_of(row).input
        outcome = outcome_of(row)
        output: list[Item] = outcome.document["output"] if outcome else []
        return output

    def _charge(self, items: list[Item], path: str) -> None:
        self._num_items_left -= len(items)
        self._num_bytes_left -= len(_encode(items))
        if self._num_items_left < 0 or self._num_bytes_left < 0:
            raise InvalidValue(
                path,
                f"{path}: there is more than {MAX_EARLIER_BYTES // 2**20} MiB or {MAX_ITEMS:,} "
                "items before this turn. Begin a new conversation.",
                "conversation_too_long",
            )


def _plain(items: list[Item]) -> list[Item]:
    """Leave out log-probabilities, which can be a hundred times the text."""
    return [
        item | {"content": [part | {"logprobs": []} for part in item["content"]]}
        if item["type"] == "message" and any(part.get("logprobs") for part in item["content"])
        else item
        for item in items
    ]
