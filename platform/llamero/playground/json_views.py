"""Views that the playground's page talks to: JSON in, JSON out, errors as the API's."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views.decorators.cache import never_cache

from llamero.accounts.callers import Caller, user_owner
from llamero.api.errors import describe_exception, error_response
from llamero.api.paths import Dialect
from llamero.errors import LlameroError

Handler = Callable[..., dict[str, Any] | None]
NOT_STAFF = LlameroError(401, "not_signed_in", "Sign in as a member of the staff.")


def json_view(**handlers: Handler) -> Callable[..., HttpResponseBase]:
    """Make a view for the staff of the handlers of its methods; what they raise is told."""

    @never_cache
    def view(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        # No page to sign in on: what asks is a script, which says what has happened.
        if not (request.user.is_active and request.user.is_staff):
            return _refuse(NOT_STAFF)
        handler = handlers.get(str(request.method).lower())
        if handler is None:
            message = f"Use {' or '.join(handlers).upper()}."
            return _refuse(LlameroError(405, "method_not_allowed", message))
        return _answer(handler, request, kwargs)

    return wraps(next(iter(handlers.values())))(view)


def user_of(request: HttpRequest) -> User:
    """Give who is signed in."""
    assert isinstance(request.user, User)
    return request.user


def session_caller(request: HttpRequest) -> Caller:
    """Give whose work it is that a page asks for, as on the socket."""
    user = user_of(request)
    return Caller(user=user, key_id=None, owner=user_owner(user.pk))


def not_found(what: str) -> LlameroError:
    """Say that somebody has no such thing: there is none, or it is another's."""
    return LlameroError(404, "not_found", f"There is no such {what}.")


def _answer(handler: Handler, request: HttpRequest, kwargs: dict[str, Any]) -> HttpResponse:
    try:
        document = handler(request, **kwargs)
    except Exception as error:
        return _refuse(describe_exception(error))
    return HttpResponse(status=204) if document is None else JsonResponse(document)


def _refuse(error: LlameroError) -> HttpResponse:
    return error_response(error, Dialect.OPENAI)
