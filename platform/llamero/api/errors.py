"""Every failure as the JSON that clients of either API expect, with the right status."""

import logging
from math import ceil
from typing import Any

import msgspec
from django.core.exceptions import (
    BadRequest,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from rest_framework.exceptions import APIException, ValidationError

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.events import Failed
from inference.relay.limits import LimitReached
from llamero.api.anthropic.errors import anthropic_error, anthropic_status
from llamero.api.paths import Dialect
from llamero.errors import LlameroError
from llamero.limits.words import describe_refusal

logger = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
LONGEST_RETRY_SECONDS = 60.0
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "invalid_request_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
    501: "not_supported_error",
    503: "unavailable_error",
}
_ENGINE_STATUS = {
    ErrorCode.QUEUE_FULL: 503,
    ErrorCode.KEY_QUEUE_FULL: 429,
    ErrorCode.RATE_LIMIT_EXCEEDED: 429,
    ErrorCode.INSUFFICIENT_QUOTA: 429,
    ErrorCode.NO_READY_REPLICA: 503,
    ErrorCode.BROKER_UNAVAILABLE: 503,
    ErrorCode.DEADLINE_EXCEEDED: 503,
    ErrorCode.ENGINE_LOST: 503,
    ErrorCode.ENGINE_FAILED: 500,
    ErrorCode.REQUEST_CRASHED_ENGINE: 500,
    ErrorCode.PLUGIN_FAILED: 500,
    ErrorCode.REQUEST_CANCELLED: 409,
    ErrorCode.STREAM_DETACHED: 409,
    ErrorCode.KEY_REVOKED: 401,
    ErrorCode.TOKEN_EXPIRED: 401,
    ErrorCode.INTERNAL_ERROR: 500,
}
# Clients try a 429 or 500 again by themselves: the one would be in vain, the other would cost
# further replicas.
_NOT_TO_REPEAT = (ErrorCode.INSUFFICIENT_QUOTA, ErrorCode.REQUEST_CRASHED_ENGINE)
_ENGINE_PARAMS = {ErrorCode.INVALID_GRAMMAR: "grammar", ErrorCode.WRONG_MODEL_KIND: "model"}
_ENGINE_TYPES = {
    ErrorCode.ENGINE_LOST: "server_error",
    ErrorCode.DEADLINE_EXCEEDED: "server_error",
    ErrorCode.STREAM_DETACHED: "server_error",
}


def from_engine_error(error: EngineError) -> LlameroError:
    """Give what a failure behind the gateway means to a client."""
    status = _ENGINE_STATUS.get(error.code, 400)
    is_retry_due = status in (429, 503)
    return LlameroError(
        status,
        error.code.value,
        error.message,
        param=error.param or _ENGINE_PARAMS.get(error.code),
        error_type=_ENGINE_TYPES.get(error.code, ""),
        retry_after=_bound_wait(error.retry_after) if is_retry_due else None,
    )


def _bound_wait(seconds: float | None) -> float:
    """Give when to try again: as measured, within a minute."""
    return RETRY_SECONDS if seconds is None else min(seconds, LONGEST_RETRY_SECONDS)


def from_failed(failed: Failed) -> LlameroError:
    """Give what the bad end of a job means to a client."""
    try:
        code = ErrorCode(failed.code)
    except ValueError:
        code = ErrorCode.INTERNAL_ERROR
    return from_engine_error(EngineError(code, failed.message, param=failed.param or None))


def describe_exception(error: Exception) -> LlameroError:
    """Give what any exception means to a client; what nobody foresaw is logged, and a plain 500."""
    match error:
        case LlameroError():
            return error
        case LimitReached():
            return describe_refusal(error)
        case EngineError():
            return from_engine_error(error)
        case ValidationError():
            return _from_validation(error.detail)
        case APIException():
            code = error.get_codes()
            name = code if isinstance(code, str) else None
            return LlameroError(error.status_code, name, str(error.detail))
        case Http404():
            return LlameroError(404, "not_found", "There is nothing at this address.")
        case PermissionDenied():
            return LlameroError(403, "permission_denied", "You may not do this.")
        case RequestDataTooBig():
            return LlameroError(413, "request_too_large", "The request body is too large.")
        case BadRequest() | SuspiciousOperation():
            return LlameroError(400, "bad_request", "The request is malformed.")
        case OperationalError() | InterfaceError():
            logger.error("The database is out of reach: %s", error)
            message = "The service cannot look up keys and models right now. Please try again."
            return LlameroError(503, "database_unavailable", message, retry_after=RETRY_SECONDS)
    logger.error("Unexpected error", exc_info=error)
    return LlameroError(500, "internal_error", "Something went wrong on the server.")


def error_object(error: LlameroError, *, is_native: bool) -> dict[str, Any]:
    """Give the ``error`` object: all four keys, then extras; native clients get numeric codes."""
    error_type = error.error_type or _TYPES.get(error.status, "server_error")
    if is_native and error.code == ErrorCode.CONTEXT_LENGTH_EXCEEDED:
        error_type = "exceed_context_size_error"
    return {
        "message": error.message,
        "type": error_type,
        "param": error.param,
        "code": error.status if is_native else error.code,
        **error.extra,
    }


def error_bytes(error: LlameroError, dialect: Dialect) -> bytes:
    """Give the JSON document of an error; text that is no valid Unicode is replaced."""
    try:
        return msgspec.json.encode(_document(error, dialect))
    except UnicodeEncodeError:
        error.message = error.message.encode(errors="replace").decode()
        error.param = error.param and error.param.encode(errors="replace").decode()
        return msgspec.json.encode(_document(error, dialect))


def _document(error: LlameroError, dialect: Dialect) -> dict[str, Any]:
    if dialect is Dialect.ANTHROPIC:
        return anthropic_error(error)
    return {"error": error_object(error, is_native=dialect is Dialect.LLAMA_SERVER)}


def error_response(error: LlameroError, dialect: Dialect) -> HttpResponse:
    """Give the HTTP answer of an error."""
    response = HttpResponse(
        error_bytes(error, dialect),
        status=anthropic_status(error) if dialect is Dialect.ANTHROPIC else error.status,
        content_type="application/json",
    )
    if error.retry_after is not None:
        response["Retry-After"] = str(max(1, ceil(error.retry_after)))
        response["retry-after-ms"] = str(ceil(error.retry_after * 1000))
    if error.code in _NOT_TO_REPEAT:
        response["x-should-retry"] = "false"
    return response


def handle_exception(exc: Exception, context: dict[str, Any]) -> HttpResponse:
    """Answer for REST framework whatever a view raised."""
    dialect = getattr(context.get("view"), "dialect", Dialect.OPENAI)
    response = error_response(describe_exception(exc), dialect)
    auth_header = getattr(exc, "challenge", None) or getattr(exc, "auth_header", None)
    if auth_header:
        response["WWW-Authenticate"] = auth_header
    return response


def _from_validation(detail: Any) -> LlameroError:
    """Name the first wrong field of a serializer's findings."""
    path = ""
    while not isinstance(detail, str):
        if isinstance(detail, dict):
            key, detail = next((k, v) for k, v in detail.items() if v)
            path += _step(key, path)
        else:
            index, inner = next((i, v) for i, v in enumerate(detail) if v)
            if not isinstance(inner, str):
                path += f"[{index}]"
            detail = inner
    code = getattr(detail, "code", None) or "invalid_value"
    code = "missing_required_parameter" if code == "required" else "invalid_value"
    return LlameroError(400, code, f"{path}: {detail}" if path else detail, param=path or None)


def _step(key: str | int, path: str) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if key == "non_field_errors":
        return ""
    return f".{key}" if path else key
