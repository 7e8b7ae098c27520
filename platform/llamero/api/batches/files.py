"""/v1/files: what batches are made from, and what comes of them."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from rest_framework.request import Request

from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.batches.documents import describe_file, describe_page
from llamero.api.batches.query import no_such_place, read_page
from llamero.api.batches.upload import Upload, receive_upload
from llamero.api.threads import run_in_thread
from llamero.batches import store
from llamero.batches.models import Purpose, StoredFile
from llamero.batches.selectors import bytes_of, find_file, list_files
from llamero.batches.services import delete_file, keep_file
from llamero.errors import InvalidValue, LlameroError

MAX_FILES_LISTED = 10_000
_READ_AT_ONCE = 256 * 1024
# Few, and apart from those of requests: a slow disk must hold up no answer to a client.
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="files")


class FilesView(AsyncAPIView):
    """Upload a file, or list them."""

    scope = Scope.FILES
    threads = _threads
    _upload: Upload | None = None

    def prepare(self, request: Request) -> None:
        """Take the file in; its body is not kept in memory, so it is known by its hash."""
        if request.method != "POST":
            return
        self._upload = upload = receive_upload(request._request)
        self.body_digest = upload.digest
        taken = bytes_of(caller_of(request).owner)
        if taken + upload.new.num_bytes > settings.KEY_FILE_BYTES:
            message = (
                f"The files of this key take {taken} bytes, and may take "
                f"{settings.KEY_FILE_BYTES}. Delete some first."
            )
            raise LlameroError(413, "storage_limit_exceeded", message, param="file")

    async def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]
        """Serve one request, and leave nothing of a file that was not kept."""
        try:
            return await super().dispatch(request, *args, **kwargs)
        finally:
            if self._upload is not None:
                await run_in_thread(self._upload.new.discard, _threads)

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Keep the file; from here on nobody discards it but us."""
        upload, self._upload = self._upload, None
        if upload is None:
            message = "The connection of this upload was closed. Please try again."
            raise LlameroError(503, "upload_lost", message)
        return json_response(
            await run_in_thread(partial(_keep, upload, caller_of(request)), _threads)
        )

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """List the files of this key."""
        page = read_page(request, default=MAX_FILES_LISTED, most=MAX_FILES_LISTED)
        purpose = request.query_params.get("purpose", "")
        if purpose and purpose not in Purpose.values:
            message = f"purpose must be one of {', '.join(Purpose.values)}."
            raise InvalidValue("purpose", message)
        owner = caller_of(request).owner
        found = await run_in_thread(partial(list_files, owner, page, purpose))
        if found is None:
            raise no_such_place()
        return json_response(describe_page(found[0], describe_file, found[1]))


class FileView(AsyncAPIView):
    """One file."""

    scope = Scope.FILES

    async def get(self, request: Request, file_id: str, **kwargs: Any) -> HttpResponseBase:
        """Describe it."""
        file = await run_in_thread(partial(find_own, file_id, caller_of(request).owner))
        return json_response(describe_file(file))

    async def delete(self, request: Request, file_id: str, **kwargs: Any) -> HttpResponseBase:
        """Delete it."""
        owner = caller_of(request).owner
        file = await run_in_thread(partial(find_own, file_id, owner))
        await run_in_thread(partial(delete_file, file_id=file.id, owner=owner))
        return json_response({"id": file.id, "object": "file", "deleted": True})


class FileContentView(AsyncAPIView):
    """What a file holds."""

    scope = Scope.FILES

    async def get(self, request: Request, file_id: str, **kwargs: Any) -> HttpResponseBase:
        """Give it, piece by piece."""
        file = await run_in_thread(partial(find_own, file_id, caller_of(request).owner))
        opened = await run_in_thread(partial(_open, file), _threads)
        response = StreamingHttpResponse(
            _read_pieces(opened), content_type="application/octet-stream"
        )
        response["Content-Length"] = str(file.num_bytes)
        response["Content-Disposition"] = content_disposition_header(True, file.filename) or ""
        return response


def find_own(file_id: str, owner: str) -> StoredFile:
    """Find a file; unknown ones, expired ones and those of others sound the same."""
    file = find_file(file_id, owner) if _may_be_id(file_id) else None
    if file is None:
        raise no_such_file(file_id)
    return file


def no_such_file(file_id: str, param: str = "file_id") -> LlameroError:
    """Say that there is no such file, or none for this caller, or none any more."""
    return LlameroError(
        404,
        "file_not_found",
        f"File with id {file_id!r:.80} not found.",
        param=param,
        error_type="invalid_request_error",
    )


def _may_be_id(text: str) -> bool:
    return len(text) <= 64 and "\0" not in text


def _keep(upload: Upload, caller: Caller) -> dict[str, Any]:
    with upload.new as new:
        file = keep_file(
            new=new,
            owner=caller.owner,
            key_id=caller.key_id,
            purpose=Purpose.BATCH,
            filename=upload.filename,
            seconds=upload.seconds,
        )
    return describe_file(file)


def _open(file: StoredFile) -> IO[bytes]:
    path: Path = store.path_of(file.id)
    try:
        opened = path.open("rb")
    except FileNotFoundError:
        raise no_such_file(file.id) from None
    return opened


async def _read_pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Read a file to its end, and close it, whoever stops reading."""
    with file:
        while piece := await run_in_thread(partial(file.read, _READ_AT_ONCE), _threads):
            yield piece
