"""What refusals mean in HTTP, some of them by the tus protocol."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ValidationError

from llamero.errors import InvalidValue, LlameroError
from models_registry.incoming.fetching.addresses import FetchRefused
from models_registry.incoming.refusal import Refusal, UploadRefused

_STATUS = {
    Refusal.TOO_LARGE: 413,
    Refusal.QUOTA: 413,
    Refusal.EXCESS: 413,
    Refusal.NO_SPACE: 507,
    Refusal.LOCKED: 423,
    Refusal.OFFSET: 409,
    Refusal.STATE: 409,
    Refusal.GONE: 410,
    Refusal.CHECKSUM: 460,
    Refusal.BAD_FILE: 422,
    Refusal.FETCH: 400,
}
_RETRY_SECONDS = 2.0


class OffsetMismatch(LlameroError):
    """Where an upload stands, for a client that has another notion."""

    def __init__(self, status: int, code: str, message: str, offset: int) -> None:
        super().__init__(status, code, message, error_type="invalid_request_error")
        self.offset = offset


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what the registry refuses into the API's errors."""
    try:
        yield
    except UploadRefused as error:
        raise _from_refusal(error) from error
    except FetchRefused as error:
        raise InvalidValue("sources", str(error)) from error
    except ValidationError as error:
        raise _from_validation(error) from error


def _from_refusal(error: UploadRefused) -> LlameroError:
    status = _STATUS[error.refusal]
    if error.offset is not None and status == 409:
        return OffsetMismatch(status, error.code, error.message, error.offset)
    return LlameroError(
        status,
        error.code,
        error.message,
        error_type="invalid_request_error" if status < 500 else "server_error",
        retry_after=_RETRY_SECONDS if error.refusal is Refusal.LOCKED else None,
    )


def _from_validation(error: ValidationError) -> LlameroError:
    if not hasattr(error, "error_dict"):
        return InvalidValue(None, " ".join(error.messages))
    name, messages = next(iter(error.message_dict.items()))
    message = " ".join(messages)
    if name == "files":
        return LlameroError(409, "import_not_ready", message, error_type="invalid_request_error")
    return InvalidValue(None if name == "__all__" else name, message)
