"""Failures as Anthropic's clients expect them: its words, its statuses, and the request's id."""

from typing import Any

from inference.protocol.errors import ErrorCode
from llamero.errors import LlameroError
from llamero.request_ids import current_request_id

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# What is a 503 elsewhere and has a status of its own here.
_STATUS = {
    ErrorCode.QUEUE_FULL: 529,
    ErrorCode.NO_READY_REPLICA: 529,
    ErrorCode.DEADLINE_EXCEEDED: 504,
}


def anthropic_status(error: LlameroError) -> int:
    """Give the status of a failure."""
    for code, status in _STATUS.items():
        if error.status == 503 and error.code == code:
            return status
    return error.status


def anthropic_error(error: LlameroError) -> dict[str, Any]:
    """Give the document of a failure; ``details`` tells programs what the message tells people."""
    status = anthropic_status(error)
    fallback = "api_error" if status >= 500 else "invalid_request_error"
    details = {"error_code": error.code, "param": error.param, **error.extra}
    return {
        "type": "error",
        "error": {
            "type": _TYPES.get(status, fallback),
            "message": _describe(error),
            "details": {name: value for name, value in details.items() if value is not None},
        },
        "request_id": current_request_id() or None,
    }


def _describe(error: LlameroError) -> str:
    """Give the message; agents look for these words to know that they must shorten their talk."""
    if error.code == ErrorCode.CONTEXT_LENGTH_EXCEEDED and "n_prompt_tokens" in error.extra:
        num_tokens, limit = error.extra["n_prompt_tokens"], error.extra["n_ctx"]
        return f"prompt is too long: {num_tokens} tokens > {limit - 1} maximum"
    return error.message
