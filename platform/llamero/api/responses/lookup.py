"""Which stored response a request means, and whether it is its caller's."""

from llamero.accounts.selectors import Caller
from llamero.api.responses.contents import items_of, question_of
from llamero.api.responses.ids import is_response_id
from llamero.api.responses.items import Item
from llamero.conversations.models import StoredResponse
from llamero.conversations.selectors import MAX_CHAIN, find_response, read_chain
from llamero.conversations.services import note_use
from llamero.errors import InvalidValue, LlameroError

PREVIOUS = "previous_response_id"


def find_row(response_id: str, caller: Caller) -> StoredResponse:
    """Find a response of the caller; unknown ones and those of others sound the same."""
    row = find_response(response_id, caller.owner) if is_response_id(response_id) else None
    if row is None or not may_read(row, caller):
        raise no_such_response(response_id)
    return row


def find_conversation(response_id: str, caller: Caller) -> list[StoredResponse]:
    """Find a response that a request goes on from, with all before it, the oldest first."""
    rows = read_chain(response_id, caller.owner) if is_response_id(response_id) else []
    if not rows or not all(may_read(row, caller) for row in rows):
        raise _no_previous(response_id, "not found")
    if rows[0].previous:
        if len(rows) >= MAX_CHAIN:
            message = f"This conversation has {MAX_CHAIN} responses already. Begin a new one."
            raise InvalidValue(PREVIOUS, message)
        raise _no_previous(rows[0].previous, "was deleted, so this conversation cannot go on")
    if not rows[-1].is_ended:
        message = f"The response {response_id} is still in progress. Wait for its end."
        raise InvalidValue(PREVIOUS, message, "response_in_progress")
    note_use(responses=rows)
    return rows


def items_before(row: StoredResponse) -> list[Item]:
    """Give the items that a response was made from, the oldest first."""
    *before, last = read_chain(row.id, row.owner)
    return [*(item for one in before for item in items_of(one)), *question_of(last).input]


def may_read(row: StoredResponse, caller: Caller) -> bool:
    """Whether a caller may use the model that a response is of."""
    return not caller.allowed_models or (row.model_id is not None and caller.may_use(row.model_id))


def no_such_response(response_id: str) -> LlameroError:
    """Say that there is no such response, or none for this caller, or none any more."""
    return LlameroError(
        404,
        "response_not_found",
        f"Response with id {response_id!r:.80} not found.",
        param="response_id",
        error_type="invalid_request_error",
    )


def _no_previous(response_id: str, problem: str) -> InvalidValue:
    message = f"Previous response with id {response_id!r:.80} {problem}."
    return InvalidValue(PREVIOUS, message, "previous_response_not_found")
