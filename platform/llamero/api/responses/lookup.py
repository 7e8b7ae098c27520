"""Which stored response a request means, and whether it is its caller's."""

from llamero.accounts.selectors import Caller
from llamero.api.responses.contents import items_of, outcome_of, question_of
from llamero.api.responses.ids import is_response_id, read_item_id
from llamero.api.responses.items import REFERENCE, Item
from llamero.conversations.models import StoredResponse
from llamero.conversations.selectors import MAX_CHAIN, find_response, read_chain
from llamero.conversations.services import note_use
from llamero.errors import InvalidValue, LlameroError

_PREVIOUS = "previous_response_id"


def find_row(response_id: str, caller: Caller) -> StoredResponse:
    """Find a response of the caller; unknown ones and those of others sound the same."""
    row = find_response(response_id, caller.owner) if is_response_id(response_id) else None
    if row is None or not _may_read(row, caller):
        raise no_such_response(response_id)
    return row


def find_conversation(response_id: str, caller: Caller) -> list[StoredResponse]:
    """Find a response that a request goes on from, with all before it, the oldest first."""
    rows = read_chain(response_id, caller.owner) if is_response_id(response_id) else []
    if not rows or not all(_may_read(row, caller) for row in rows):
        raise _no_previous(response_id, "not found")
    if rows[0].previous:
        if len(rows) >= MAX_CHAIN:
            message = f"This conversation has {MAX_CHAIN} responses already. Begin a new one."
            raise InvalidValue(_PREVIOUS, message)
        raise _no_previous(rows[0].previous, "was deleted, so this conversation cannot go on")
    if not rows[-1].is_ended:
        message = f"The response {response_id} is still in progress. Wait for its end."
        raise InvalidValue(_PREVIOUS, message, "response_in_progress")
    note_use(responses=rows)
    return rows


def resolve_references(items: list[Item], caller: Caller) -> list[Item]:
    """Put the items that references mean in their place."""
    return [
        _find_item(item["id"], f"input[{i}].id", caller) if item["type"] == REFERENCE else item
        for i, item in enumerate(items)
    ]


def items_of_all(rows: list[StoredResponse]) -> list[Item]:
    """Give all items of a conversation, the oldest first."""
    return [item for row in rows for item in items_of(row)]


def items_before(row: StoredResponse) -> list[Item]:
    """Give the items that a response was made from, the oldest first."""
    *before, last = read_chain(row.id, row.owner)
    return [*items_of_all(before), *question_of(last).input]


def no_such_response(response_id: str) -> LlameroError:
    """Say that there is no such response, or none for this caller, or none any more."""
    return LlameroError(
        404,
        "response_not_found",
        f"Response with id {response_id!r:.80} not found.",
        param="response_id",
        error_type="invalid_request_error",
    )


def _find_item(item_id: str, path: str, caller: Caller) -> Item:
    place = read_item_id(item_id)
    row = find_response(place.response_id, caller.owner) if place else None
    if place is not None and row is not None and _may_read(row, caller):
        outcome = outcome_of(row)
        found: list[Item] = question_of(row).input
        if place.is_output:
            found = outcome.document["output"] if outcome else []
        match = next((item for item in found if item["id"] == item_id), None)
        if match is not None:
            return match
    message = f"{path}: there is no item with the id {item_id!r:.80}."
    raise InvalidValue(path, message, "item_not_found")


def _may_read(row: StoredResponse, caller: Caller) -> bool:
    return not caller.allowed_models or (row.model_id is not None and caller.may_use(row.model_id))


def _no_previous(response_id: str, problem: str) -> InvalidValue:
    message = f"Previous response with id {response_id!r:.80} {problem}."
    return InvalidValue(_PREVIOUS, message, "previous_response_not_found")
