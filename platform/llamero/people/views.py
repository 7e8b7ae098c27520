"""Everybody's own page: their keys, and what they have used. And the door to it."""

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from llamero.accounts.models import ApiKey
from llamero.accounts.services import (
    IssuedKey,
    KeyHasEnded,
    KeyHasNoText,
    revoke_api_keys,
    rotate_api_key,
    switch_api_keys,
)
from llamero.console.access import strict_page
from llamero.people.first_call import describe_first_call
from llamero.people.forms import OwnKeyForm, OwnRotationForm, SignInForm
from llamero.people.own_keys import find_own_key, list_own_keys, make_own_key, room_for_keys
from llamero.people.usage import DAYS, read_own_budgets, read_own_usage

SIGN_IN = reverse_lazy("people:sign-in")
signed_in = login_required(login_url=SIGN_IN)


@method_decorator([never_cache, strict_page], name="dispatch")
class SignInView(LoginView):
    """Lets in who has a password here, staff or not."""

    template_name = "people/sign_in.html"
    authentication_form = SignInForm
    next_page = "people:account"
    redirect_authenticated_user = True


@require_safe
@never_cache
@strict_page
@signed_in
def show_account(request: HttpRequest) -> HttpResponse:
    """Show the page."""
    return _show(request)


@require_POST
@never_cache
@strict_page
@signed_in
@sensitive_variables("issued")
def make_key(request: HttpRequest) -> HttpResponse:
    """Make a key, and show it, this once."""
    form = OwnKeyForm(request.POST, user=_user_of(request))
    if not form.is_valid():
        return _show(request, form)
    try:
        issued = make_own_key(user=_user_of(request), **form.cleaned_data)
    except ValidationError as error:
        form.add_error(None, error.messages)
        return _show(request, form)
    return _show_once(request, issued, "Your new key")


@require_POST
@never_cache
@strict_page
@signed_in
@sensitive_variables("issued")
def rotate_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """Give a key a new text, and show it, this once."""
    key, form = _find(request, key_id), OwnRotationForm(request.POST)
    if not form.is_valid():
        return _show(request, problem="Choose how long the old key still works.")
    try:
        issued = rotate_api_key(key=key, grace=form.grace)
    except KeyHasEnded:
        return _show(request, problem="This key was revoked, and stays so.")
    except KeyHasNoText:
        return _show(request, problem="This key has no text: your signed tokens open it.")
    return _show_once(request, issued, "Your key's new text")


@require_POST
@signed_in
def disable_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """Have a key refused. Only an operator turns it on again: it may have been one who did this."""
    switch_api_keys(keys=[_find(request, key_id)], enabled=False)
    return _go_back()


@require_POST
@signed_in
def revoke_key(request: HttpRequest, key_id: int) -> HttpResponse:
    """End a key for good."""
    revoke_api_keys(keys=[_find(request, key_id)])
    return _go_back()


def _user_of(request: HttpRequest) -> User:
    """Give who is signed in."""
    assert isinstance(request.user, User)
    return request.user


def _find(request: HttpRequest, key_id: int) -> ApiKey:
    key = find_own_key(_user_of(request), key_id)
    if key is None:
        raise Http404
    return key


def _show(request: HttpRequest, form: Form | None = None, problem: str = "") -> HttpResponse:
    user = _user_of(request)
    context = {
        "keys": list_own_keys(user),
        "room": room_for_keys(user),
        "form": form or OwnKeyForm(user=user),
        "rotation_form": OwnRotationForm(auto_id=False),
        "usage": read_own_usage(user),
        "budgets": read_own_budgets(user),
        "days": DAYS,
        "first_call": describe_first_call(request),
        "problem": problem,
    }
    status = 400 if problem or (form is not None and form.errors) else 200
    return render(request, "people/account.html", context, status=status)


def _show_once(request: HttpRequest, issued: IssuedKey, title: str) -> HttpResponse:
    context = {"title": title, "key": issued.key, "key_text": issued.secret_text}
    return render(request, "people/key_issued.html", context)


def _go_back() -> HttpResponseRedirect:
    return HttpResponseRedirect(str(reverse_lazy("people:account")))
