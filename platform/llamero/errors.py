"""The errors that a client may see: a code, public words, and a fitting HTTP status."""

from typing import Any


class LlameroError(Exception):
    """A failure of one request. ``message`` is public: no secrets, paths or tracebacks.

    ``param`` names the wrong field as a client would write it (``messages[0].role``).
    ``extra`` fields join the error object. ``retry_after`` is in seconds.
    """

    def __init__(
        self,
        status: int,
        code: str | None,
        message: str,
        *,
        param: str | None = None,
        error_type: str = "",
        retry_after: float | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.error_type = error_type
        self.retry_after = retry_after
        self.extra = extra or {}


class InvalidValue(LlameroError):
    """A field of the request holds what it may not."""

    def __init__(self, param: str | None, message: str, code: str = "invalid_value") -> None:
        super().__init__(400, code, message, param=param)


class NotSupported(LlameroError):
    """The request asks for something this server does not do yet; it is never half done."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(400, "not_supported", message, param=param)
