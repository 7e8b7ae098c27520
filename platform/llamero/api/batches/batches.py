"""/v1/batches: made, looked at, cancelled. Who runs them is ``llamero.batches.running``."""

from functools import partial
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.batches.documents import describe_batch, describe_page
from llamero.api.batches.files import find_own, no_such_file
from llamero.api.batches.query import no_such_place, read_page
from llamero.api.batches.upload import read_lifetime
from llamero.api.fields import AnyValue, RequestSerializer, StrictString, validate
from llamero.api.json_body import read_json_object
from llamero.api.responses.small_fields import read_metadata
from llamero.api.threads import run_in_thread
from llamero.batches.endpoints import ENDPOINTS
from llamero.batches.models import Batch, BatchState, Purpose
from llamero.batches.selectors import find_batch, list_batches, num_open
from llamero.batches.services import cancel_batch, create_batch
from llamero.errors import InvalidValue, LlameroError

MAX_OPEN_BATCHES = 100
DEFAULT_LISTED, MAX_LISTED = 20, 100


class BatchSerializer(RequestSerializer):
    """The fields of POST /v1/batches."""

    input_file_id = StrictString(max_length=64)
    endpoint = StrictString(choices=ENDPOINTS)
    completion_window = StrictString(choices=("24h",))
    metadata = AnyValue(required=False)
    output_expires_after = AnyValue(required=False)


class BatchesView(AsyncAPIView):
    """Make a batch, or list them."""

    scope = Scope.BATCHES
    serializer_class = BatchSerializer

    def prepare(self, request: Request) -> None:
        """Validate the body; the file's lines are looked at later."""
        if request.method == "POST":
            self.fields = validate(BatchSerializer, read_json_object(request._request))
            self.metadata = read_metadata(self.fields.get("metadata"))
            self.output_seconds = _read_output_seconds(self.fields.get("output_expires_after"))

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Make it."""
        batch = await run_in_thread(partial(self._create, caller_of(request)))
        return json_response(describe_batch(batch))

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """List the batches of this key, the newest first."""
        page = read_page(request, default=DEFAULT_LISTED, most=MAX_LISTED)
        found = await run_in_thread(partial(list_batches, caller_of(request).owner, page))
        if found is None:
            raise no_such_place()
        return json_response(describe_page(found[0], describe_batch, found[1]))

    def _create(self, caller: Caller) -> Batch:
        file_id = self.fields["input_file_id"]
        try:
            file = find_own(file_id, caller.owner)
        except LlameroError:
            raise InvalidValue("input_file_id", no_such_file(file_id).message) from None
        if file.purpose != Purpose.BATCH:
            message = "input_file_id must be a file with the purpose batch."
            raise InvalidValue("input_file_id", message)
        if num_open(caller.owner) >= MAX_OPEN_BATCHES:
            message = f"This key has {MAX_OPEN_BATCHES} batches that have not ended. Wait for some."
            raise LlameroError(429, "too_many_batches", message, retry_after=60.0)
        try:
            return create_batch(
                caller=caller,
                input_file=file,
                endpoint=self.fields["endpoint"],
                metadata=self.metadata,
                output_seconds=self.output_seconds,
            )
        except FileNotFoundError:
            raise InvalidValue("input_file_id", no_such_file(file_id).message) from None


class BatchView(AsyncAPIView):
    """One batch."""

    scope = Scope.BATCHES

    async def get(self, request: Request, batch_id: str, **kwargs: Any) -> HttpResponseBase:
        """Describe it."""
        batch = await run_in_thread(partial(_find_own, batch_id, caller_of(request).owner))
        return json_response(describe_batch(batch))


class CancelBatchView(AsyncAPIView):
    """Stop a batch."""

    scope = Scope.BATCHES

    async def post(self, request: Request, batch_id: str, **kwargs: Any) -> HttpResponseBase:
        """Cancel it; what is answered is kept."""
        batch = await run_in_thread(partial(_cancel, batch_id, caller_of(request).owner))
        return json_response(describe_batch(batch))


def _cancel(batch_id: str, owner: str) -> Batch:
    """Ask for a batch to be cancelled; asking again changes nothing."""
    batch = _find_own(batch_id, owner)
    cancel_batch(batch_id=batch.id)
    batch = _find_own(batch_id, owner)
    if batch.state not in (BatchState.CANCELLING, BatchState.CANCELLED):
        message = f"A batch that is {batch.state} cannot be cancelled."
        raise LlameroError(
            409, "batch_not_cancellable", message, error_type="invalid_request_error"
        )
    return batch


def _find_own(batch_id: str, owner: str) -> Batch:
    """Find a batch; unknown ones and those of others sound the same."""
    batch = find_batch(batch_id, owner) if len(batch_id) <= 64 and "\0" not in batch_id else None
    if batch is None:
        raise LlameroError(
            404,
            "batch_not_found",
            f"Batch with id {batch_id!r:.80} not found.",
            param="batch_id",
            error_type="invalid_request_error",
        )
    return batch


def _read_output_seconds(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidValue("output_expires_after", "output_expires_after must be an object.")
    return read_lifetime(value.get("anchor"), value.get("seconds"), "output_expires_after")
