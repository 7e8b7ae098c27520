"""Read the key, or token, of a request: from a header, never from the URL."""

import hmac
import logging

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from llamero.accounts.callers import Caller
from llamero.accounts.selectors import find_caller
from llamero.accounts.tokens.reading import MAX_TOKEN_LENGTH

logger = logging.getLogger(__name__)
_KEY_HEADERS = ("HTTP_X_API_KEY", "HTTP_API_KEY")


class ApiKeyAuthentication(BaseAuthentication):
    """``Authorization: Bearer …``, ``x-api-key`` or ``api-key``; all failures look the same.

    But for tokens that an issuer of ours has signed: those are told what is wrong.
    """

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Give the caller, or refuse."""
        caller = find_caller_at(read_key(request), request.META.get("REMOTE_ADDR") or "")
        if caller is None:
            raise AuthenticationFailed("No valid API key was given.", "invalid_api_key")
        return caller, caller

    def authenticate_header(self, request: Request) -> str:
        """Ask for a bearer token."""
        return "Bearer"


class MetricsAuthentication(ApiKeyAuthentication):
    """Takes the operator's token for metrics too, which reads those of every model."""

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        """Give who scrapes, or whose key it is, or refuse."""
        token: str = settings.METRICS_TOKEN
        if not token or not hmac.compare_digest(read_key(request).encode(), token.encode()):
            return super().authenticate(request)
        scraper = Caller(user=None, key_id=None, owner="metrics")
        return scraper, scraper


def find_caller_at(key_text: str, address: str) -> Caller | None:
    """Find whose key it is that somebody shows at an address; None where it does not count there.

    To the client it is as good as unknown then: a thief learns nothing. The log tells its owner.
    Raises TokenRefused for a token of an issuer of ours that does not count.
    """
    caller = find_caller(key_text)
    if caller is None or caller.may_come_from(address):
        return caller
    logger.warning("Key %s was shown at %s, from where it may not be used", caller.key_id, address)
    return None


def read_key(request: Request) -> str:
    """Take the key out of the headers; an empty string where there is none to be had."""
    header = request.META.get("HTTP_AUTHORIZATION", "")
    if header:
        return read_bearer(header)
    for name in _KEY_HEADERS:
        value: str = request.META.get(name, "").strip()
        if value:
            return _bound(value)
    return ""


def read_bearer(header: str) -> str:
    """Take the key out of an Authorization header (two headers arrive joined by a comma)."""
    scheme, _, key = header.strip().partition(" ")
    return _bound(key.strip()) if scheme.lower() == "bearer" else ""


def _bound(key: str) -> str:
    """Take what is too long for a token, and for a key, for none; the log tells the operator."""
    if len(key) <= MAX_TOKEN_LENGTH:
        return key
    logger.info("A token was refused: of %d letters, more than %d", len(key), MAX_TOKEN_LENGTH)
    return ""
