"""Passwords are judged ten times in ten minutes from one address or for one account, not faster.

A try counts before it is judged, so that many at once gain nothing. Names that do not exist count
as others do. Nobody can shut an account's owner out: from addresses that they have signed in from
only what came from there counts. Where nobody can count, passwords are judged as ever.
"""

import logging
from functools import cache
from hashlib import blake2b
from math import ceil
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from inference.relay.connect import UNREACHABLE, RedisError, SyncRedis, connect
from inference.relay.passwords import note_right, take_try
from llamero.accounts.wrong_keys import place_of

logger = logging.getLogger(__name__)
_PLACE_BYTES = 8


class PasswordBackend(ModelBackend):
    """Django's own, slowed."""

    @sensitive_variables("password", "credentials")
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: Any,
    ) -> Any:
        """Give whose password it is; raises ValidationError, for the form, where one must wait."""
        if request is None or username is None:
            return super().authenticate(request, username, password, **credentials)
        account = blake2b(username.encode("utf-8", "replace"), digest_size=_PLACE_BYTES).hexdigest()
        slow_down(request, account)
        user = super().authenticate(request, username, password, **credentials)
        if user is not None:
            note_signed_in(request, account)
        return user


def slow_down(request: HttpRequest, account: str = "") -> None:
    """Count an attempt to sign in; raises ValidationError after too many that failed."""
    if not settings.WRONG_PASSWORDS:
        return
    try:
        wait = take_try(_client(), _place_of(request), account, settings.WRONG_PASSWORDS)
    except (*UNREACHABLE, RedisError) as error:
        logger.warning("Wrong passwords could not be counted: %s", error)
        return
    if wait > 0:
        logger.warning("Too many attempts to sign in from %s", request.META.get("REMOTE_ADDR"))
        minutes = ceil(wait / 60)
        raise ValidationError(
            "Too many attempts to sign in have failed. Please try again in "
            f"{minutes} minute{'' if minutes == 1 else 's'}.",
            code="too_many_wrong_passwords",
        )


def note_signed_in(request: HttpRequest, account: str = "") -> None:
    """Let an attempt count for nothing that did not fail, or could not be judged."""
    if not settings.WRONG_PASSWORDS:
        return
    try:
        note_right(_client(), _place_of(request), account)
    except (*UNREACHABLE, RedisError) as error:
        logger.warning("A right password could not be noted: %s", error)


def _place_of(request: HttpRequest) -> str:
    return place_of(request.META.get("REMOTE_ADDR") or "", num_bytes=_PLACE_BYTES)


@cache
def _client() -> SyncRedis:
    return connect(settings.REDIS_URL, patience_seconds=2.0)
