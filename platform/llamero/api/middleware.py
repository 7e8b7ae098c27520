"""What every API answer has, whoever made it: a request id, JSON, and safe headers."""

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, cast

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from llamero.api.errors import error_response
from llamero.api.paths import ANTHROPIC_VERSION_HEADER, Dialect, dialect_of, is_api_path
from llamero.errors import LlameroError
from llamero.request_ids import REQUEST_ID_HEADER, begin_request

# The version of its API that OpenAI names in each answer.
_OPENAI_VERSION = "2020-10-01"
_CODES = {400: "bad_request", 404: "not_found", 413: "request_too_large"}
_MESSAGES = {
    400: "The request is malformed.",
    403: "You may not do this.",
    404: "There is nothing at this address.",
    413: "The request body is too large.",
}


@sync_and_async_middleware
def api_answers(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Give answers on API paths an id and a length, and replace Django's pages by JSON."""
    if iscoroutinefunction(get_response):
        get_async: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            if not is_api_path(request.path):
                return await get_async(request)
            request_id, began_at = _begin(request), perf_counter()
            response = _refuse_host(request) or await get_async(request)
            return _finish(request, response, request_id, began_at)

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        if not is_api_path(request.path):
            return cast("HttpResponseBase", get_response(request))
        request_id, began_at = _begin(request), perf_counter()
        response = _refuse_host(request) or get_response(request)
        return _finish(request, response, request_id, began_at)

    return answer


def _begin(request: HttpRequest) -> str:
    return begin_request(request.headers.get(REQUEST_ID_HEADER, ""))


def _refuse_host(request: HttpRequest) -> HttpResponseBase | None:
    """Turn away names that are not ours (DNS rebinding)."""
    try:
        request.get_host()
    except DisallowedHost:
        error = LlameroError(400, "bad_host", "This server does not answer to that host name.")
        return error_response(error, dialect_of(request.path))
    return None


def _finish(
    request: HttpRequest, response: HttpResponseBase, request_id: str, began_at: float
) -> HttpResponseBase:
    status = response.status_code
    if status >= 400 and response.get("Content-Type", "").partition(";")[0] != "application/json":
        error = LlameroError(
            status,
            _CODES.get(status, "internal_error" if status >= 500 else None),
            _MESSAGES.get(status, "Something went wrong on the server."),
        )
        response = error_response(error, dialect_of(request.path))
    if status == 204:
        # Django names a type also where there is nothing.
        response.headers.pop("Content-Type", None)
    elif isinstance(response, HttpResponse):
        response["Content-Length"] = str(len(response.content))
    response[REQUEST_ID_HEADER] = request_id
    dialect = dialect_of(request.path)
    if dialect is Dialect.ANTHROPIC or ANTHROPIC_VERSION_HEADER in request.headers:
        response["request-id"] = request_id
    elif dialect is Dialect.OPENAI:
        response["openai-processing-ms"] = str(round(1000 * (perf_counter() - began_at)))
        response["openai-version"] = _OPENAI_VERSION
    response["X-Content-Type-Options"] = "nosniff"
    return response
