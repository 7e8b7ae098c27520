"""Addresses that show many wrong keys are answered late, and told to wait.

A key is looked at before its address is: so whoever shows a good one is served, however many wrong
ones come from the same address. Guessing a key is hopeless at any pace (238 random bits); what this
spares is work and logs, and it tells a client that was left with an old key to stop.
"""

import asyncio
from hashlib import blake2b
from ipaddress import IPv6Address

from django.conf import settings

from inference.protocol.errors import EngineError
from llamero import dispatch
from llamero.accounts.networks import read_address
from llamero.errors import LlameroError

HOLD_SECONDS = 1.0
# More than these at once are answered without being held: each costs a little memory.
MAX_HELD = 200
_PLACE_BYTES = 2


class _Held:
    """How many answers this process holds back."""

    number = 0


async def refuse_wrong_key(address: str) -> LlameroError | None:
    """Count a wrong key; give the refusal once there were too many, after a while.

    None where it is one of few, or nobody can count.
    """
    limit: int = settings.WRONG_KEYS_PER_MINUTE
    if not limit or not address:
        return None
    try:
        number, seconds = await dispatch.get_dispatcher().wrong_keys.count(place_of(address))
    except EngineError:
        return None
    if number <= limit:
        return None
    await _hold()
    message = "Many wrong API keys came from your address. Check the key, and try again later."
    return LlameroError(429, "too_many_wrong_keys", message, retry_after=max(1.0, seconds))


def place_of(address: str, num_bytes: int = _PLACE_BYTES) -> str:
    """Fold an address to one of 65,536 places, so that counts take bounded memory.

    One customer has a whole /64 of IPv6. Two addresses in one place do each other no harm: a good
    key is never refused. Where it would be harm, more bytes make more places.
    """
    found = read_address(address)
    packed = address.encode() if found is None else found.packed
    if isinstance(found, IPv6Address):
        packed = packed[:8]
    return blake2b(packed, digest_size=num_bytes).hexdigest()


async def _hold() -> None:
    """Keep an answer back for a moment."""
    if _Held.number >= MAX_HELD:
        return
    _Held.number += 1
    try:
        await asyncio.sleep(HOLD_SECONDS)
    finally:
        _Held.number -= 1
