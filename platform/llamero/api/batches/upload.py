"""A file that comes as a form: written to disk, counted and hashed while it is read."""

import errno
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import BadRequest
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, QueryDict
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from llamero.batches.store import NewFile
from llamero.errors import InvalidValue, LlameroError

MIN_SECONDS, MAX_SECONDS = 3600, 30 * 24 * 3600
_FORM = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came whole, and what its sender wants with it."""

    new: NewFile
    filename: str
    seconds: int | None

    @property
    def digest(self) -> bytes:
        """What tells one upload from another."""
        return f"{self.new.sha256} {self.filename} {self.seconds}".encode()


def receive_upload(request: HttpRequest) -> Upload:
    """Read a form with ``file`` and ``purpose``; raises LlameroError and leaves nothing behind."""
    if request.content_type != _FORM:
        raise LlameroError(415, "unsupported_media_type", f"Send the file as {_FORM}.")
    receiver = _Receiver(request)
    try:
        fields = _read_form(request, receiver)
        seconds = _check_fields(fields, receiver)
        assert receiver.new is not None
        return Upload(receiver.new, receiver.filename, seconds)
    except BaseException:
        if receiver.new is not None:
            receiver.new.discard()
        raise


def read_lifetime(anchor: Any, seconds: Any, param: str) -> int:
    """Validate after how many seconds a file is to expire."""
    if anchor != "created_at":
        raise InvalidValue(f"{param}.anchor", f"{param}.anchor must be created_at.")
    if type(seconds) is not int or not MIN_SECONDS <= seconds <= MAX_SECONDS:
        message = f"{param}.seconds must be an integer from {MIN_SECONDS} to {MAX_SECONDS}."
        raise InvalidValue(f"{param}.seconds", message)
    return seconds


def _read_form(request: HttpRequest, receiver: "_Receiver") -> QueryDict:
    """Read a form to its last boundary: one that was cut is no shorter file."""
    body = _FormBody(request)
    try:
        # It asks for nothing but ``read``.
        fields, _ = MultiPartParser(request.META, cast("Any", body), [receiver]).parse()
    except (MultiPartParserError, BadRequest):
        message = "The form is malformed: its parts, their heads or their boundary."
        raise LlameroError(400, "invalid_form", message) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        message = "There is no room for this file on the server."
        raise LlameroError(507, "storage_full", message) from None
    if not body.is_whole:
        message = "The form was cut: it must end with its boundary and --."
        raise LlameroError(400, "invalid_form", message)
    return fields


def _check_fields(fields: QueryDict, receiver: "_Receiver") -> int | None:
    """Judge what came beside the file; give how long it is to be kept, where that was said."""
    if "purpose" not in fields:
        raise InvalidValue("purpose", "purpose is missing.", "missing_required_parameter")
    if fields["purpose"] != "batch":
        raise InvalidValue("purpose", "purpose must be batch: files are for batches alone.")
    if receiver.new is None:
        raise InvalidValue("file", "file is missing.", "missing_required_parameter")
    anchor, text = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and text is None:
        return None
    seconds = int(text) if text and text.isdecimal() and len(text) < 10 else text
    return read_lifetime(anchor, seconds, "expires_after")


class _FormBody:
    """A form's bytes on their way to Django's reader, which takes a form that was cut for whole.

    ``last`` is the boundary after the last part; the reader's handler tells it.
    """

    def __init__(self, request: HttpRequest) -> None:
        self.last = b""
        self.is_whole = True  # an empty form lacks its fields, which says more
        self._request = request
        self._end = b""

    def read(self, size: int) -> bytes:
        """Give the next bytes, and look for the last boundary in them."""
        piece = self._request.read(size)
        seen = self._end + piece
        self.is_whole = self.is_whole or self.last in seen
        self._end = seen[1 - len(self.last) :]
        return piece


class _Receiver(FileUploadHandler):
    """Takes the one file of a form in, as Django's reader of forms hands it on."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self.new: NewFile | None = None
        self.filename = ""

    def handle_raw_input(
        self, input_data: Any, META: Any, content_length: int, boundary: Any, *args: Any
    ) -> None:
        """Tell the body what it must hold."""
        assert isinstance(input_data, _FormBody)
        input_data.last, input_data.is_whole = b"--" + boundary + b"--", False

    def new_file(self, field_name: str, file_name: str, *args: Any, **kwargs: Any) -> None:
        """Begin a file."""
        super().new_file(field_name, file_name, *args, **kwargs)
        if field_name != "file" or self.new is not None:
            raise InvalidValue("file", "The form must hold one file, in the field file.")
        self.filename = file_name.encode(errors="replace").decode().replace("\0", "")
        self.new = NewFile()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Write a piece, unless it is one too many."""
        assert self.new is not None
        if self.new.num_bytes + len(raw_data) > settings.MAX_FILE_BYTES:
            message = f"A file may have at most {settings.MAX_FILE_BYTES} bytes."
            raise LlameroError(413, "file_too_large", message, param="file")
        self.new.write(raw_data)

    def file_complete(self, file_size: int) -> None:
        """Give Django nothing: the file is ours."""
