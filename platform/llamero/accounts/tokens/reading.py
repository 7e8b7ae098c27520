"""A token's text, taken apart without trusting any of it."""

import json
import math
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from llamero.accounts.tokens.refusals import UnprovenToken

MAX_TOKEN_LENGTH = 8192
_MAX_KID_LENGTH = 256
_SHAPE = re.compile(r"(eyJ[A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\Z")
# Tokens of other types say so, and are for other things (RFC 8725, 3.11).
_TYPES = {"jwt", "at+jwt", "application/at+jwt"}
Claims = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReadToken:
    """What a text says that may be a token. Addresses of keys in its header are never looked at."""

    algorithm: str
    kid: str
    claims: Claims
    signed: bytes
    signature: bytes


def looks_like_token(text: str) -> bool:
    """Whether a text has the shape of a signed token, which no key of ours has."""
    return len(text) <= MAX_TOKEN_LENGTH and _SHAPE.match(text) is not None


def read_token(text: str, max_length: int = MAX_TOKEN_LENGTH) -> ReadToken:
    """Take a token apart; raises UnprovenToken for whatever is not plainly one."""
    match = _SHAPE.match(text) if len(text) <= max_length else None
    if match is None:
        raise UnprovenToken("not in the shape of a token")
    header = _read_object(match[1], "header")
    algorithm, kid = header.get("alg"), header.get("kid", "")
    if not isinstance(algorithm, str):
        raise UnprovenToken("no algorithm")
    if not isinstance(kid, str) or len(kid) > _MAX_KID_LENGTH:
        raise UnprovenToken("a key id that is none")
    if str(header.get("typ", "JWT")).lower() not in _TYPES or "cty" in header:
        raise UnprovenToken("of another type")
    if "crit" in header or "b64" in header or "zip" in header:
        raise UnprovenToken("with extensions")
    signed = f"{match[1]}.{match[2]}".encode()
    return ReadToken(
        algorithm, kid, _read_object(match[2], "payload"), signed, _decode(match[3], "signature")
    )


def _read_object(part: str, name: str) -> Claims:
    try:
        found = json.loads(
            _decode(part, name).decode(),
            object_pairs_hook=_pair_up,
            parse_constant=_refuse,
            parse_float=_read_float,
        )
    except (ValueError, RecursionError):
        raise UnprovenToken(f"its {name} is no plain JSON") from None
    if not isinstance(found, dict):
        raise UnprovenToken(f"its {name} is no object")
    return found


def _decode(part: str, name: str) -> bytes:
    """Decode base64url, in its one spelling only: a token has no twin of other letters."""
    try:
        raw = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise UnprovenToken(f"its {name} is no base64url") from None
    if urlsafe_b64encode(raw).rstrip(b"=") != part.encode():
        raise UnprovenToken(f"its {name} is spelled in another way")
    return raw


def _pair_up(pairs: Iterable[tuple[str, Any]]) -> Claims:
    """Refuse names that come twice: readers differ in which one they take."""
    found: Claims = {}
    for name, value in pairs:
        if name in found:
            raise ValueError
        found[name] = value
    return found


def _refuse(_: str) -> Any:
    raise ValueError


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number
