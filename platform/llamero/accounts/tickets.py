"""Tickets: for half a minute they open a socket in a key's place, so that no page needs the key."""

import time
from dataclasses import dataclass, replace

from django.core import signing

from llamero.accounts.callers import Caller, Grant, read_grant
from llamero.accounts.selectors import find_key_caller

TICKET_SECONDS = 30
_MAX_LENGTH = 4096
_SALT = "llamero.socket-ticket"


@dataclass(frozen=True, slots=True)
class IssuedTicket:
    """The text that a socket is opened with, until a Unix time."""

    text: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class TicketHolder:
    """Whom a ticket lets in: its key, within the grant and the time of a token, if it had one."""

    key_id: int
    grant: Grant | None
    ends_at: float | None

    def find(self, address: str) -> Caller | None:
        """Find who that is; None where the key may be used no more, or not at an address."""
        if self.ends_at is not None and self.ends_at <= time.time():
            return None
        caller = find_key_caller(self.key_id, self.grant)
        if caller is None or not caller.may_come_from(address):
            return None
        return replace(caller, ends_at=self.ends_at)


def issue_ticket(caller: Caller) -> IssuedTicket:
    """Make a ticket for the holder of a key. Nothing is kept: what it says is signed."""
    grant = caller.grant.as_document() if caller.grant is not None else None
    text = signing.dumps([caller.key_id, grant, caller.ends_at], salt=_SALT)
    return IssuedTicket(text, int(time.time()) + TICKET_SECONDS)


def read_ticket(text: str) -> TicketHolder | None:
    """Read a ticket; None where it is not one of ours, or too old."""
    if len(text) > _MAX_LENGTH:
        return None
    try:
        key_id, grant, ends_at = signing.loads(text, salt=_SALT, max_age=TICKET_SECONDS)
    except signing.BadSignature:
        return None
    return TicketHolder(key_id, read_grant(grant), ends_at)
