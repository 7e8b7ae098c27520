"""What the claims of a proven token say: for whom, until when, of whom."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llamero.accounts.tokens.reading import Claims
from llamero.accounts.tokens.refusals import TokenRefused, token_expired

MAX_SUBJECT_LENGTH = 255
_MAX_WORDS = 500


def check_audience(claims: Claims, audiences: Iterable[str]) -> None:
    """Refuse a token for somebody else."""
    named = claims.get("aud")
    found = [named] if isinstance(named, str) else named
    if not isinstance(found, list) or not set(audiences) & {x for x in found if isinstance(x, str)}:
        raise TokenRefused("This token is not meant for this server (aud).")


def check_times(claims: Claims, now: float, leeway: float) -> float:
    """Refuse a token before and after its time; give when it ends, the leeway included."""
    ends_at = _read_time(claims, "exp")
    if ends_at is None:
        raise TokenRefused("This token has no end (exp).")
    if ends_at + leeway <= now:
        raise token_expired()
    for name in ("nbf", "iat"):
        begins_at = _read_time(claims, name)
        if begins_at is not None and begins_at - leeway > now:
            raise TokenRefused(f"This token is not valid yet ({name}).")
    return ends_at + leeway


def check_required(claims: Claims, required: Mapping[str, Any]) -> None:
    """Refuse a token without a claim that its issuer's must have."""
    for name, wanted in required.items():
        found = claims.get(name)
        values = found if isinstance(found, list) else [found]
        choices = wanted if isinstance(wanted, list) else [wanted]
        is_there = found is not None and found is not False
        is_good = is_there if wanted is True else any(_equals(values, one) for one in choices)
        if not is_good:
            raise TokenRefused(f"This token lacks what its issuer's must have ({name:.100}).")


def read_subject(claims: Claims) -> str:
    """Give whom a token is of."""
    return read_text(claims, "sub")


def read_text(claims: Claims, name: str) -> str:
    """Give a claim that is a short text."""
    text = claims.get(name)
    if (
        not isinstance(text, str)
        or not 0 < len(text) <= MAX_SUBJECT_LENGTH
        or not text.isprintable()
    ):
        raise TokenRefused(f"This token names nobody ({name:.100}).")
    return text


def read_username(claims: Claims, name: str) -> str:
    """Give the claim that names a user; an address of which the issuer is not sure names nobody."""
    if name == "email" and claims.get("email_verified", True) not in (True, "true"):
        raise TokenRefused("This token names a user by an address that is not verified (email).")
    return read_text(claims, name)


def read_words(claims: Claims, name: str) -> Sequence[str]:
    """Give a claim that lists texts, or has them between spaces; nothing where it is missing."""
    found = claims.get(name)
    words = found.split(" ") if isinstance(found, str) else found
    if not isinstance(words, list):
        return ()
    return [word for word in words[:_MAX_WORDS] if isinstance(word, str) and word]


def read_names(claims: Claims, name: str) -> Sequence[str]:
    """Give a claim that lists names, which may have spaces: a text is one of them."""
    found = claims.get(name)
    return [found] if isinstance(found, str) else read_words(claims, name)


def _equals(values: Sequence[Any], wanted: Any) -> bool:
    """Compare without Python's notion that 1 is True."""
    return any(type(value) is type(wanted) and value == wanted for value in values)


def _read_time(claims: Claims, name: str) -> float | None:
    found = claims.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) > 1e12:
        raise TokenRefused(f"This token has a time that is none ({name}).")
    return float(found)
