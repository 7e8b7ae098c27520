"""The base of every API view: one thread hop for what may block, the rest on the event loop."""

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from inference.protocol.replicas import ModelKind
from inference.relay.answers import Claim
from inference.relay.limits import LimitReached
from llamero import dispatch
from llamero.accounts.authentication import read_key
from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller
from llamero.accounts.uses import uses
from llamero.accounts.wrong_keys import refuse_wrong_key
from llamero.api.early_refusals import early_refusals
from llamero.api.idempotency import answer_once, read_claim
from llamero.api.model_choice import choose_default_model, choose_model, describe_route
from llamero.api.paths import Dialect
from llamero.api.resuming import retell_run
from llamero.api.run_names import CONVERSATION_HEADER
from llamero.api.sse import RUN_HEADER
from llamero.api.threads import choose_threads, run_in_thread
from llamero.limits.metering import admit
from llamero.limits.readings import (
    anthropic_headers,
    begin_readings,
    note_readings,
    openai_headers,
)
from llamero.request_ids import note_route
from models_registry.selectors import ServedModel


class AnyAccept(BaseContentNegotiation):
    """Ignore Accept: the body's ``stream`` decides what comes back."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        """Take the first."""
        return parsers[0]

    def select_renderer(
        self, request: Any, renderers: Any, format_suffix: str | None = None
    ) -> Any:
        """Take the first."""
        return renderers[0], renderers[0].media_type


class AsyncAPIView(APIView):
    """A view whose handlers are coroutines.

    Order of a request: method (405), key (401), ``prepare`` (parse, validate, look up), handler.
    Key and ``prepare`` run in one thread, which gives its database connections back, so that an
    open stream holds none.
    """

    dialect: Dialect = Dialect.OPENAI
    # What a key must be for; ``needed_scope`` where that depends on the method.
    scope: Scope = Scope.INFERENCE
    content_negotiation_class = AnyAccept
    renderer_classes = (JSONRenderer,)
    # The deployment whose slots a request will wait for; set by ``prepare``. Such a request is
    # counted with its jobs, any other one by itself.
    waits_at: str = ""
    # Whether a request may leave its model out.
    may_leave_model_out: bool = False
    # What tells one body from another, where it is not kept in memory; set by ``prepare``.
    body_digest: bytes | None = None
    # Where ``prepare`` runs, if it may take long.
    threads: ThreadPoolExecutor | None = None
    _claim: Claim | None = None

    def needed_scope(self, method: str) -> Scope:
        """Give what a key must be for to use a method."""
        return self.scope

    def choose_model(self, name: object, kinds: frozenset[ModelKind]) -> ServedModel:
        """Find the model that the request names, or the first that fits where it names none.

        The answer's headers tell who gives it.
        """
        caller = caller_of(self.request)
        conversation = self.request.headers.get(CONVERSATION_HEADER, "")
        if name is None and self.may_leave_model_out:
            served = choose_default_model(caller, kinds, conversation)
        else:
            served = choose_model(name, caller, kinds, conversation)
        self.headers |= describe_route(served)
        return served

    def prepare(self, request: Request) -> None:
        """Do what blocks, before the handler: read the body, validate, look models up."""

    async def dispatch(  # type: ignore[override]
        self, request: Any, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Run one request; everything raised becomes the API's error document."""
        plain_request: HttpRequest = request
        failure: Exception | None = None
        if (refusal := early_refusals.repeat(plain_request)) is not None:
            return refusal
        self.args, self.kwargs = args, kwargs
        self.request = request = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        begin_readings()
        note_route(_route_of(request))
        response: HttpResponseBase
        try:
            handler = self._find_handler(request)
            if request.method != "OPTIONS":
                threads = self.threads or choose_threads(plain_request)
                await run_in_thread(partial(self._prepare, request), threads)
                uses.write_soon()
            response = await self._answer(request, partial(self._handle, handler, request))
        except AuthenticationFailed as error:
            response = self.handle_exception(await _refuse_key(request, error))
        except Exception as error:
            if isinstance(error, LimitReached):
                note_readings(error.readings)
            response, failure = self.handle_exception(error), error
        is_anthropic = self.dialect is Dialect.ANTHROPIC
        self.headers |= anthropic_headers() if is_anthropic else openai_headers()
        self.response = self.finalize_response(request, response, *args, **kwargs)  # type: ignore[arg-type]
        early_refusals.note(plain_request, failure, self.response, self.dialect)
        return self.response

    async def _answer(
        self, request: Request, answer: Callable[[], Awaitable[HttpResponseBase]]
    ) -> HttpResponseBase:
        """Give the answer, or that of the request with the same idempotency key."""
        if self._claim is None:
            return await answer()
        return await answer_once(self._claim, self, answer)

    async def _handle(self, handler: Any, request: Request) -> HttpResponseBase:
        """Have the handler answer, once a request that waits for no slot is counted."""
        if not self.waits_at and request.method != "OPTIONS" and isinstance(request.auth, Caller):
            await admit(request.auth)
        response: HttpResponseBase = await handler(request, *self.args, **self.kwargs)
        return response

    async def name_stream(self, response: StreamingHttpResponse) -> str | None:
        """Give the run that tells a stream again, once it is kept."""
        run = response.get(RUN_HEADER)
        owner = caller_of(self.request).owner
        if run is None or await dispatch.get_dispatcher().find_run(run, owner) is None:
            return None
        return str(run)

    async def tell_again(self, name: str) -> HttpResponseBase:
        """Tell a run from its first event on."""
        return await retell_run(name, caller_of(self.request))

    async def options(  # type: ignore[override]
        self, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Name the methods; needs no key."""
        return HttpResponse(status=204)

    def _find_handler(self, request: Request) -> Any:
        method = str(request.method).lower()
        if method not in self.http_method_names:
            return self.http_method_not_allowed(request)
        return getattr(self, method, None) or self.http_method_not_allowed(request)

    def _prepare(self, request: Request) -> None:
        self.initial(request)
        self.prepare(request)
        self._claim = read_claim(request._request, request.auth, self.body_digest)


async def _refuse_key(request: Request, error: AuthenticationFailed) -> Exception:
    """Give what a request without a good key is answered with."""
    address = request.META.get("REMOTE_ADDR") or ""
    refusal = await refuse_wrong_key(address) if read_key(request) else None
    return refusal or error


def _route_of(request: Request) -> str:
    """Give the path of a request, without what names models and the like."""
    match = request._request.resolver_match
    return f"/{match.route}" if match else request.path


def caller_of(request: Request) -> Caller:
    """Give who the request is from."""
    caller = request.auth
    assert isinstance(caller, Caller)
    return caller


def json_response(document: Any) -> HttpResponse:
    """Answer 200 with a JSON document."""
    return HttpResponse(msgspec.json.encode(document), content_type="application/json")
