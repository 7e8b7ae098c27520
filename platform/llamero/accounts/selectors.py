"""Who calls, by the key they show; and who may call no more."""

import logging
from dataclasses import replace
from hashlib import sha256

from channels.db import database_sync_to_async
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.utils import timezone

from llamero.accounts.callers import Caller, Grant, key_owner, read_owner
from llamero.accounts.key_text import newest_pepper, seal, seal_under_all
from llamero.accounts.models import ApiKey, KeyState
from llamero.accounts.models.api_key import ApiKeyQuerySet
from llamero.accounts.networks import read_networks
from llamero.accounts.scopes import scopes_of
from llamero.accounts.tokens.holders import find_key, known_key
from llamero.accounts.tokens.proving import ProvenToken, prove_token
from llamero.accounts.tokens.reading import looks_like_token
from llamero.accounts.tokens.refusals import TokenRefused, UnprovenToken
from llamero.accounts.uses import uses
from llamero.expiring_cache import ExpiringCache
from models_registry.models import Model

__all__ = ["Caller", "find_caller", "find_key_caller", "recent_callers", "review_owners"]

logger = logging.getLogger(__name__)

# One second, so that a revoked key dies everywhere within one, also where no message arrives.
recent_callers: ExpiringCache[Caller] = ExpiringCache(lifetime_seconds=1.0)


def find_caller(key_text: str) -> Caller | None:
    """Find who a key or token belongs to; None for unknown, wrong, ended keys and users alike.

    Raises TokenRefused for a token that an issuer of ours has signed, and that does not count.
    """
    if not key_text:
        return None
    if looks_like_token(key_text):
        return _find_token_caller(key_text)
    cache_key = seal(key_text, newest_pepper())
    return recent_callers.recall(cache_key, lambda: _read_caller(key_text))


def find_key_caller(key_id: int, grant: Grant | None = None) -> Caller | None:
    """Find who a stored request is from, if the key may still be used, within a token's grant."""
    key = _whole_keys().filter(pk=key_id).first()
    return None if key is None or key.state != KeyState.ACTIVE else _caller_of(key).within(grant)


def _find_token_caller(text: str) -> Caller | None:
    try:
        token = prove_token(text)
    except UnprovenToken as reason:
        logger.info("A token was refused: %s", reason)
        return None
    cache_key = f"token {sha256(text.encode()).hexdigest()}"
    return recent_callers.recall(cache_key, lambda: _read_token_caller(token))


def _read_token_caller(token: ProvenToken) -> Caller:
    """Ask for the key that stands for a token, made when it is first seen; raises TokenRefused."""
    now = timezone.now()
    usable = _whole_keys().usable(now)
    key = usable.filter(known_key(token)).first() or usable.filter(pk=find_key(token).pk).first()
    if key is None:
        raise TokenRefused("Whom this token is of may not use this server.")
    uses.note(key, "", now)
    models = None
    if token.models is not None:
        named = Model.objects.filter(slug__in=token.models)
        models = frozenset(named.values_list("pk", flat=True))
    caller = _caller_of(key).within(Grant(token.scopes, models))
    return replace(caller, ends_at=token.ends_at)


def _read_caller(key_text: str) -> Caller | None:
    """Ask the database for a usable key with one of these digests.

    Keys are found by what they are sealed as, not by their public part, and ended ones not at all:
    so there is no difference, in time either, between unknown, wrong and ended keys.
    """
    now = timezone.now()
    seals = seal_under_all(key_text)
    is_it = Q(digest__in=seals) | Q(old_digest__in=seals, old_expires_at__gt=now)
    key = _whole_keys().usable(now).filter(is_it).first()
    if key is None:
        return None
    uses.note(key, key_text, now)
    return _caller_of(key)


def _whole_keys() -> ApiKeyQuerySet:
    return ApiKey.objects.with_owner().select_related("user")


def _caller_of(key: ApiKey) -> Caller:
    return Caller(
        user=key.user,
        key_id=key.pk,
        owner=key_owner(key.pk),
        allowed_models=frozenset(key.allowed_models.values_list("pk", flat=True)),
        priority=key.priority,
        team_id=key.team_id,
        scopes=scopes_of(key.scopes),
        networks=read_networks(key.networks),
    )


async def review_owners(owners: frozenset[str]) -> frozenset[str]:
    """Give those that may call no more, and have what is remembered of the others read again.

    ``settings.OWNER_REVIEW``: the data plane's connection asks while they have something open.
    While the database is out of reach this raises, and what is remembered goes on to count.
    """
    lost: frozenset[str] = await database_sync_to_async(_find_lost)(owners)
    recent_callers.forget(lambda caller: caller.owner in lost)
    recent_callers.doubt(lambda caller: caller.owner in owners)
    return lost


def _find_lost(owners: frozenset[str]) -> frozenset[str]:
    """Ask the database about all of them at once. Who has no name of ours keeps what they have."""
    numbers: dict[str, dict[int, str]] = {"key": {}, "user": {}}
    for owner in owners:
        kind, number = read_owner(owner)
        if kind in numbers and number:
            numbers[kind][number] = owner
    staff = get_user_model().objects.filter(is_active=True, is_staff=True)
    allowed = {"key": ApiKey.objects.usable(timezone.now()), "user": staff}
    lost: set[str] = set()
    for kind, named in numbers.items():
        if named:
            good = set(allowed[kind].filter(pk__in=named).values_list("pk", flat=True))
            lost |= {owner for number, owner in named.items() if number not in good}
    return frozenset(lost)
