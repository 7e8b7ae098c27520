"""One request of a batch, answered by the view that answers it over HTTP."""

import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from inference.protocol.errors import ErrorCode
from inference.protocol.replicas import ModelKind
from llamero.accounts.selectors import Caller
from llamero.api.async_view import AsyncAPIView
from llamero.api.errors import describe_exception, error_bytes
from llamero.api.model_choice import EMBEDDING, GENERATIVE
from llamero.api.openai.chat_completions import ChatCompletionsView
from llamero.api.openai.completions import CompletionsView
from llamero.api.openai.embeddings import EmbeddingsView
from llamero.api.paths import Dialect
from llamero.api.responses.create import ResponsesView
from llamero.request_ids import begin_request, make_request_id

RESPONSES = "/v1/responses"
VIEWS: dict[str, type[AsyncAPIView]] = {
    "/v1/chat/completions": ChatCompletionsView,
    "/v1/completions": CompletionsView,
    "/v1/embeddings": EmbeddingsView,
    RESPONSES: ResponsesView,
}
# No fault of the request: it may go well later.
_PASSING = frozenset({429, 503})
# A fault of the server that may not come again; tried a few times.
_DOUBTFUL = frozenset({500, 502, 504})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a view said to one request."""

    status: int
    request_id: str
    body: bytes
    retry_seconds: float | None = None

    @property
    def is_good(self) -> bool:
        """Whether it is an answer and no error."""
        return self.status < 400

    @property
    def is_passing(self) -> bool:
        """Whether the same request should be made again until it is answered."""
        return self.status in _PASSING

    @property
    def is_limited(self) -> bool:
        """Whether a limit of its owner leaves no room for it now; then it says when to try."""
        codes = (ErrorCode.RATE_LIMIT_EXCEEDED, ErrorCode.INSUFFICIENT_QUOTA)
        is_told = any(f'"{code.value}"'.encode() in self.body for code in codes)
        return self.status == 429 and self.retry_seconds is not None and is_told

    @property
    def is_doubtful(self) -> bool:
        """Whether the same request may be made again, but not for ever."""
        return self.status in _DOUBTFUL and _CRASHED not in self.body


# Such a request would cost further replicas.
_CRASHED = ErrorCode.REQUEST_CRASHED_ENGINE.value.encode()


class OwnerAuthentication(BaseAuthentication):
    """Knows who a request is from: the owner of the batch, whose key was shown at its upload."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Give the owner."""
        return self._caller, self._caller


def kinds_for(endpoint: str) -> frozenset[ModelKind]:
    """Give the kinds of models that answer at a route."""
    return EMBEDDING if endpoint == "/v1/embeddings" else GENERATIVE


async def answer(endpoint: str, body: bytes, caller: Caller) -> Answer:
    """Make a request as if it had come over HTTP, and give what it gets, good or bad.

    Cancelling stops what was begun for it. Run it in a task of its own, which is named after it.
    """
    request_id = begin_request(make_request_id())
    authentication = (lambda: OwnerAuthentication(caller),)
    view: Any = VIEWS[endpoint].as_view(authentication_classes=authentication)
    try:
        response = await view(_make_request(endpoint, _settle(endpoint, body)))
        wait = response.get("retry-after-ms")
        seconds = None if wait is None else int(wait) / 1000
        return Answer(response.status_code, request_id, response.content, seconds)
    except Exception as error:
        document = error_bytes(describe_exception(error), Dialect.OPENAI)
        return Answer(500, request_id, document)


def _settle(endpoint: str, body: bytes) -> bytes:
    """Have responses stored only where that is asked for: nobody goes on from most of these."""
    if endpoint != RESPONSES:
        return body
    fields: dict[str, Any] = json.loads(body)
    if fields.get("store") is None:
        fields["store"] = False
    return json.dumps(fields, ensure_ascii=False).encode()


def _make_request(endpoint: str, body: bytes) -> ASGIRequest:
    scope = {
        "type": "http",
        "method": "POST",
        "path": endpoint,
        "query_string": b"",
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
    }
    return ASGIRequest(scope, BytesIO(body))
