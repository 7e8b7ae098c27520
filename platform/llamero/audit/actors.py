"""Who is at work: whoever sent the request, or whoever runs a command in a shell."""

import getpass
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from llamero.accounts.callers import Caller
from llamero.audit.models import Source
from models_registry.behalf import current_owner

# Commands that serve: what they change on their own, no person does.
_SERVING = frozenset({"serve", "control", "node", "up"})


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes something, and from where."""

    source: Source
    name: str = ""
    user_id: int | None = None
    address: str = ""


_request: ContextVar[HttpRequest | None] = ContextVar("audit_request", default=None)


def current_actor() -> Actor:
    """Tell who is at work; looked up only when something has changed."""
    request = _request.get()
    if request is not None:
        return _read_request(request)
    command = _read_command(sys.argv)
    return command if command.source is Source.COMMAND else _read_owner(current_owner())


@sync_and_async_middleware
def note_request(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Remember whose request is being served."""
    if iscoroutinefunction(get_response):

        async def serve_async(request: HttpRequest) -> HttpResponseBase:
            token = _request.set(request)
            try:
                response: HttpResponseBase = await get_response(request)
            finally:
                _request.reset(token)
            return response

        return serve_async

    def serve(request: HttpRequest) -> HttpResponseBase:
        token = _request.set(request)
        try:
            response: HttpResponseBase = get_response(request)
        finally:
            _request.reset(token)
        return response

    return serve


def _read_request(request: HttpRequest) -> Actor:
    address = str(request.META.get("REMOTE_ADDR") or "")
    # Where REST framework leaves who the request is from.
    caller = getattr(request, "auth", None)
    if isinstance(caller, Caller):
        return _read_caller(caller, address)
    user: Any = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return Actor(Source.PAGE, "", None, address)
    return Actor(Source.PAGE, user.get_username(), user.pk, address)


def _read_caller(caller: Caller, address: str) -> Actor:
    names = [] if caller.user is None else [caller.user.get_username()]
    if caller.key_id is not None:
        names.append(f"key {caller.key_id}")
    user_id = None if caller.user is None else caller.user.pk
    return Actor(Source.API, " with ".join(names), user_id, address)


def _read_owner(owner: str) -> Actor:
    """Tell for whom the program does what was asked for earlier, if it does."""
    kind, _, number = owner.partition(":")
    if not number.isdecimal():
        return Actor(Source.PROGRAM)
    if kind != "user":
        return Actor(Source.PROGRAM, f"{kind} {number}, by way of an import")
    user = User.objects.filter(pk=int(number)).first()
    name = user.get_username() if user else f"user {number}"
    return Actor(Source.PROGRAM, f"{name}, by way of an import", user.pk if user else None)


def _read_command(arguments: list[str]) -> Actor:
    """Tell of a command who runs it, as the system knows them."""
    is_shell = Path(arguments[0]).name in ("manage.py", "django-admin") and len(arguments) > 1
    if not is_shell or arguments[1] in _SERVING:
        return Actor(Source.PROGRAM)
    try:
        person = getpass.getuser()
    except (KeyError, OSError):
        person = ""
    return Actor(Source.COMMAND, f"{person or 'somebody'} by {arguments[1]}")
