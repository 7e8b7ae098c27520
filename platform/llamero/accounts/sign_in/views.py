"""The way to the identity provider and back, and out of both."""

import hmac
import logging
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth import login
from django.contrib.auth.views import LogoutView
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from llamero.accounts.passwords import note_signed_in, slow_down
from llamero.accounts.sign_in.attempt import Attempt, ProviderAway, SignInFailed
from llamero.accounts.sign_in.current import get_provider
from llamero.accounts.sign_in.rights import admit

logger = logging.getLogger(__name__)
# What a browser remembers between both ends: it alone can finish what it began.
COOKIE = "llamero_sign_in"
COOKIE_SECONDS = 600
_SALT = "llamero.accounts.sign_in"
_MARK = "signed_in_by_provider"
_BACKEND = "llamero.accounts.passwords.PasswordBackend"
_MAX_CODE_LENGTH = 4096
ADMIN_DOOR, ACCOUNT_DOOR = "admin:login", "people:sign-in"


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    """Send somebody to the provider."""
    if not settings.SIGN_IN.is_on:
        raise Http404
    target = _read_target(request)
    try:
        url, attempt = get_provider().begin(_callback_of(request))
    except SignInFailed as error:
        return _fail(request, str(error), target)
    response = HttpResponseRedirect(url)
    response.set_cookie(
        COOKIE,
        signing.dumps(asdict(attempt) | {"next": target}, salt=_SALT),
        max_age=COOKIE_SECONDS,
        path=reverse("sign-in"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


@never_cache
@require_GET
def come_back(request: HttpRequest) -> HttpResponse:
    """Sign in who comes back from the provider with a code, or say why not."""
    if not settings.SIGN_IN.is_on:
        raise Http404
    attempt, target = _read_cookie(request)
    try:
        if attempt is None or not _is_answer_to(request, attempt):
            raise SignInFailed("This sign-in was not begun here, or too long ago.")
        if "error" in request.GET:
            logger.info("The provider refused a sign-in: %.60r", request.GET["error"])
            name = settings.SIGN_IN.name
            raise SignInFailed(f"You cancelled at {name}, or it refused to sign you in.")
        slow_down(request)
        code = request.GET.get("code", "")[:_MAX_CODE_LENGTH]
        claims = get_provider().finish(attempt, code, _callback_of(request))
        user = admit(claims, settings.SIGN_IN)
    except SignInFailed as error:
        if isinstance(error, ProviderAway):
            note_signed_in(request)
        response = _fail(request, str(error), target)
    except ValidationError as error:
        response = _fail(request, error.messages[0], target)
    else:
        login(request, user, backend=_BACKEND)
        note_signed_in(request)
        request.session[_MARK] = True
        request.session.set_expiry(settings.SIGN_IN.session_hours * 3600)
        logger.info("User %s signed in through the identity provider", user.pk)
        response = HttpResponseRedirect(target)
    response.delete_cookie(COOKIE, path=reverse("sign-in"), samesite="Lax")
    return response


def leave(request: HttpRequest) -> HttpResponse:
    """Sign out of the admin; who came from the provider is sent there to sign out, too."""
    return _leave(request, admin.site.admin_view(admin.site.logout, cacheable=True))


def leave_account(request: HttpRequest) -> HttpResponse:
    """The same on everybody's own page."""
    return _leave(request, LogoutView.as_view(next_page=reverse(ACCOUNT_DOOR)))


def _leave(request: HttpRequest, log_out: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    came_from_provider = settings.SIGN_IN.is_on and _MARK in request.session
    response = log_out(request)
    if not came_from_provider or request.user.is_authenticated:
        return response
    try:
        endpoint = get_provider().document().end_session_endpoint
    except SignInFailed:
        endpoint = ""
    if not endpoint:
        return response
    back = request.build_absolute_uri(reverse(ADMIN_DOOR))
    query = {"client_id": settings.SIGN_IN.client_id, "post_logout_redirect_uri": back}
    url = f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
    # A page: browsers let no form of ours, and so no redirect after one, lead elsewhere.
    return render(request, "accounts/signed_out.html", {"url": url, "name": settings.SIGN_IN.name})


def _is_answer_to(request: HttpRequest, attempt: Attempt) -> bool:
    """Whether the provider answers what this browser has asked, and it is the provider."""
    state = request.GET.get("state", "")
    issuer = request.GET.get("iss", settings.SIGN_IN.issuer)
    is_ours = hmac.compare_digest(state.encode(), attempt.state.encode())
    return is_ours and issuer == settings.SIGN_IN.issuer


def _read_cookie(request: HttpRequest) -> tuple[Attempt | None, str]:
    """Give what this browser remembers, and where it wanted to go."""
    try:
        kept: Any = signing.loads(
            request.COOKIES.get(COOKIE, ""), salt=_SALT, max_age=COOKIE_SECONDS
        )
    except signing.BadSignature:
        return None, reverse("admin:index")
    return Attempt(kept["state"], kept["nonce"], kept["verifier"]), kept["next"]


def _read_target(request: HttpRequest) -> str:
    """Give where somebody wants to go, if that is here."""
    target = request.GET.get("next", "")
    is_here = url_has_allowed_host_and_scheme(
        target, {request.get_host()}, require_https=request.is_secure()
    )
    return target if is_here and len(target) <= 1000 else reverse("admin:index")


def _callback_of(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("sign-in-callback"))


def _fail(request: HttpRequest, message: str, target: str) -> HttpResponseRedirect:
    """Say why on the page where one signs in."""
    messages.error(request, message)
    door = ACCOUNT_DOOR if urlsplit(target).path == reverse("people:account") else ADMIN_DOOR
    return HttpResponseRedirect(f"{reverse(door)}?{urlencode({'next': target})}")
