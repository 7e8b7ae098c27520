"""Issue, rotate, switch and revoke keys."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from llamero.accounts.key_text import make_key_text, newest_pepper, read_prefix, seal
from llamero.accounts.models import ApiKey, Priority, Team, TokenIssuer
from llamero.accounts.notices import announce_keys
from llamero.accounts.scopes import Scope
from llamero.audit.recording import recorded
from models_registry.models import Model

LONGEST_GRACE = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key and, this once, its text."""

    key: ApiKey
    secret_text: str = field(repr=False)


class KeyHasEnded(Exception):
    """What was revoked stays so."""


class KeyHasNoText(Exception):
    """A key that tokens of an issuer open has no text of ours."""


@transaction.atomic
def issue_api_key(
    *,
    name: str,
    user: User | None = None,
    team: Team | None = None,
    expires_at: datetime | None = None,
    allowed_models: Iterable[Model] = (),
    scopes: Iterable[Scope] = (),
    networks: Iterable[str] = (),
    enabled: bool = True,
    priority: Priority = Priority.NORMAL,
) -> IssuedKey:
    """Make a key. Its text is in the result and nowhere else: show it and forget it.

    Raises ValidationError.
    """
    key = ApiKey(
        user=user,
        team=team,
        name=name,
        expires_at=expires_at,
        scopes=[str(scope) for scope in scopes],
        networks=list(networks),
        enabled=enabled,
        priority=priority,
    )
    text = _seal_new(key)
    key.full_clean()
    key.save()
    key.allowed_models.set(allowed_models)
    return IssuedKey(key, text)


def open_signed_key(*, issuer: TokenIssuer, user: User, team: Team | None) -> ApiKey:
    """Give the key that an issuer's tokens for a user open, in a team or in none; make it first.

    Raises IntegrityError where another request has just made it.
    """
    key = ApiKey.objects.filter(issuer=issuer, user=user, team=team).first()
    if key is not None:
        return key
    name = f"{user.get_username()} by {issuer.name}"[:100]
    prefix = read_prefix(make_key_text())
    return ApiKey.objects.create(issuer=issuer, user=user, team=team, name=name, prefix=prefix)


@transaction.atomic
def rotate_api_key(*, key: ApiKey, grace: timedelta) -> IssuedKey:
    """Give a key a new text; the old one opens the same until the grace is over.

    Another one that was still in its grace ends at once. Raises KeyHasEnded or KeyHasNoText.
    """
    locked = ApiKey.objects.select_for_update().get(pk=key.pk)
    if locked.revoked_at is not None:
        raise KeyHasEnded
    if locked.issuer_id is not None:
        raise KeyHasNoText
    now = timezone.now()
    locked.old_prefix, locked.old_digest, locked.old_pepper, locked.old_expires_at = (
        (locked.prefix, locked.digest, locked.pepper, now + min(grace, LONGEST_GRACE))
        if grace > timedelta(0)
        else ("", None, None, None)
    )
    text = _seal_new(locked)
    locked.rotated_at = now
    locked.save()
    return IssuedKey(locked, text)


def revoke_api_keys(*, keys: Iterable[ApiKey]) -> int:
    """End keys for good, and what they have open; give how many were still alive."""
    chosen = [key.pk for key in keys]
    alive = ApiKey.objects.filter(pk__in=chosen, revoked_at__isnull=True)
    with recorded(alive):
        num_revoked = alive.update(revoked_at=timezone.now(), enabled=False)
    announce_keys(chosen)
    return num_revoked


def switch_api_keys(*, keys: Iterable[ApiKey], enabled: bool) -> int:
    """Have keys refused for a while, or no more; give how many changed. Revoked ones stay so."""
    chosen = [key.pk for key in keys]
    others = ApiKey.objects.filter(pk__in=chosen, revoked_at__isnull=True, enabled=not enabled)
    with recorded(others):
        num_switched = others.update(enabled=enabled)
    announce_keys(chosen)
    return num_switched


def _seal_new(key: ApiKey) -> str:
    """Give a key a new text."""
    text, pepper = make_key_text(), newest_pepper()
    key.prefix, key.digest, key.pepper = read_prefix(text), seal(text, pepper), pepper
    return text
