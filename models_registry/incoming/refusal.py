"""Why a file, or a piece of one, is not taken."""

from enum import StrEnum


class Refusal(StrEnum):
    """What is wrong with what was asked; a file that is bad itself has the inspector's codes."""

    TOO_LARGE = "file_too_large"
    QUOTA = "quota_exceeded"
    NO_SPACE = "insufficient_storage"
    LOCKED = "upload_locked"
    OFFSET = "offset_mismatch"
    EXCESS = "too_many_bytes"
    CHECKSUM = "checksum_mismatch"
    GONE = "upload_refused"
    BAD_FILE = "bad_file"
    STATE = "wrong_state"
    FETCH = "fetch_failed"


class UploadRefused(Exception):
    """Something is not taken. ``offset`` is where an upload stands, where that is the matter.

    ``code`` is the inspector's for a bad file, else the refusal itself.
    """

    def __init__(
        self, refusal: Refusal, message: str, *, code: str = "", offset: int | None = None
    ) -> None:
        super().__init__(message)
        self.refusal = refusal
        self.message = message
        self.code = code or refusal.value
        self.offset = offset
