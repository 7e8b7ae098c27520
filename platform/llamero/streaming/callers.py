"""Who is on the socket: the owner of an API key, or a signed-in member of the staff."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.conf import settings
from django.http import parse_cookie

from llamero.accounts.authentication import find_caller_at, read_bearer
from llamero.accounts.selectors import Caller
from llamero.accounts.sessions import find_session_caller
from llamero.accounts.tickets import read_ticket
from llamero.accounts.tokens.refusals import TokenRefused
from llamero.streaming.origins import Scope, read_header

SUBPROTOCOL = "llamero.v1"
KEY_SUBPROTOCOL_PREFIX = "llamero.key."


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and how to find out whether they still may call."""

    caller: Caller
    _find: Callable[[], Caller | None]

    async def renew(self) -> Caller | None:
        """Ask anew: keys are revoked, users leave, sessions end. None if that has happened."""
        try:
            caller = await database_sync_to_async(self._find)()
        except TokenRefused:
            return None
        return caller if caller is not None and caller.owner == self.caller.owner else None


async def identify(find: Callable[[], Caller | None]) -> Identity | None:
    """Ask who it is, on a thread that gives its database connection back."""
    caller = await database_sync_to_async(find)()
    return Identity(caller, find) if caller is not None else None


async def identify_by_key(key: str, address: str) -> Identity | None:
    """Find whose key this is; None for any key that is not good, or not at this address.

    Raises TokenRefused for a token of an issuer of ours that does not count.
    """
    return await identify(lambda: find_caller_at(key, address))


async def identify_by_ticket(ticket: str, address: str) -> Identity | None:
    """Find whose ticket this is; who is let in by one stays when it expires."""
    holder = read_ticket(ticket)
    return None if holder is None else await identify(lambda: holder.find(address))


async def identify_by_session(session_key: str) -> Identity | None:
    """Find whose session this is; None unless an active member of the staff is signed in."""
    return await identify(lambda: find_session_caller(session_key))


def read_offered_key(scope: Scope) -> str | None:
    """Give the API key of the handshake: Authorization header, else a subprotocol."""
    authorization = read_header(scope, b"authorization")
    if authorization is not None:
        return read_bearer(authorization)
    for name in scope.get("subprotocols", ()):
        if name.startswith(KEY_SUBPROTOCOL_PREFIX):
            return str(name.removeprefix(KEY_SUBPROTOCOL_PREFIX))
    return None


def read_offered_ticket(scope: Scope) -> str | None:
    """Give the ticket of the address. A key has no place there."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return query["ticket"][-1] if "ticket" in query else None


def read_address(scope: Scope) -> str:
    """Give the address of the client; empty where there is none."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def read_session_key(scope: Scope) -> str | None:
    """Give the session's key from the cookies of the handshake."""
    cookies = parse_cookie(read_header(scope, b"cookie") or "")
    return cookies.get(settings.SESSION_COOKIE_NAME) or None
