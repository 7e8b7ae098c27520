"""Whether a token is good: signed by an issuer of ours, for us, now. Remembered for a minute."""

import logging
import time
from dataclasses import dataclass
from hashlib import sha256

from llamero.accounts.scopes import DEFAULT_SCOPES, Scope
from llamero.accounts.tokens.claims import (
    check_audience,
    check_required,
    check_times,
    read_names,
    read_subject,
    read_username,
    read_words,
)
from llamero.accounts.tokens.issuers import KnownIssuer, find_issuer
from llamero.accounts.tokens.key_sets import KeySet, StaticKeys
from llamero.accounts.tokens.reading import Claims, ReadToken, read_token
from llamero.accounts.tokens.refusals import TokenRefused, UnprovenToken, token_expired
from llamero.expiring_cache import ExpiringCache

logger = logging.getLogger(__name__)
ALL_MODELS = "*"


@dataclass(frozen=True, slots=True)
class ProvenToken:
    """What a token gives: of whom it is, and to what it is limited; None is no limit.

    ``ends_at`` is in seconds since 1970, with the issuer's leeway.
    """

    issuer_id: int
    subject: str
    username: str
    ends_at: float
    scopes: frozenset[Scope]
    models: tuple[str, ...] | None
    teams: tuple[str, ...] | None


recent_tokens: ExpiringCache[ProvenToken] = ExpiringCache(lifetime_seconds=60.0)


def prove_token(text: str) -> ProvenToken:
    """Prove a token, and give what it says.

    Raises UnprovenToken where no issuer of ours has signed it, TokenRefused where it does not count
    all the same, LlameroError where that cannot be told now. May block for the issuer's keys.
    """
    token = read_token(text)
    issuer = find_issuer(token.claims.get("iss"))
    if issuer is None:
        raise UnprovenToken("of an issuer that is not ours, or disabled")
    # Another version of the issuer's settings proves it anew.
    name = f"{issuer.version} {sha256(text.encode()).hexdigest()}"
    proven = recent_tokens.recall(name, lambda: _prove(token, issuer))
    assert proven is not None
    if proven.ends_at <= time.time():
        raise token_expired()
    return proven


def check_signature(token: ReadToken, keys: KeySet | StaticKeys, algorithms: list[str]) -> None:
    """Refuse what none of these keys has signed in one of these ways; raises UnprovenToken."""
    if token.algorithm not in algorithms:
        raise UnprovenToken("signed in a way that its issuer does not have")
    # An issuer may have put another key in the place of one, under its id or without any.
    if not _is_signed(token, keys) and not (keys.renew() and _is_signed(token, keys)):
        raise UnprovenToken("not signed with a key of its issuer")


def _is_signed(token: ReadToken, keys: KeySet | StaticKeys) -> bool:
    return any(
        key.has_signed(token.algorithm, token.signed, token.signature)
        for key in keys.find(token.kid, token.algorithm)
    )


def _prove(token: ReadToken, issuer: KnownIssuer) -> ProvenToken:
    settings = issuer.settings
    check_signature(token, issuer.keys, settings.algorithms)
    claims = token.claims
    try:
        ends_at = check_times(claims, time.time(), settings.leeway_seconds)
        check_audience(claims, settings.audiences)
        check_required(claims, settings.required_claims)
        return ProvenToken(
            issuer_id=settings.pk,
            subject=read_subject(claims),
            username=read_username(claims, settings.username_claim),
            ends_at=ends_at,
            scopes=_read_scopes(claims, settings.scope_claim, settings.scope_map),
            models=_read_models(claims, settings.models_claim),
            teams=tuple(_read_teams(claims, settings.team_claim)) if settings.team_claim else None,
        )
    except TokenRefused as refusal:
        logger.info("A token of %s was refused: %s", settings.name, refusal.message)
        raise


def _read_scopes(claims: Claims, name: str, scope_map: dict[str, list[str]]) -> frozenset[Scope]:
    """Give what a token is for, by the issuer's words or by ours."""
    if not name:
        return DEFAULT_SCOPES
    words = read_words(claims, name)
    ours = [scope for word in words for scope in scope_map.get(word, ())] if scope_map else words
    return frozenset(Scope(one) for one in ours if one in Scope.values)


def _read_models(claims: Claims, name: str) -> tuple[str, ...] | None:
    """Give the models that a token names."""
    words = read_words(claims, name) if name else [ALL_MODELS]
    return None if ALL_MODELS in words else tuple(words)


def _read_teams(claims: Claims, name: str) -> list[str]:
    """Give the teams that a token names; some providers write them as paths."""
    return [one.strip("/") for one in read_names(claims, name)]
