"""Issue and revoke keys."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from llamero.accounts.key_text import make_key_text, newest_pepper, read_prefix, seal
from llamero.accounts.models import ApiKey
from models_registry.models import Model


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key and, this once, its text."""

    key: ApiKey
    secret_text: str = field(repr=False)


@transaction.atomic
def issue_api_key(
    *,
    user: User,
    name: str,
    expires_at: datetime | None = None,
    allowed_models: Iterable[Model] = (),
    enabled: bool = True,
) -> IssuedKey:
    """Make a key. Its text is in the result and nowhere else: show it and forget it."""
    text = make_key_text()
    pepper = newest_pepper()
    key = ApiKey(
        user=user,
        name=name,
        prefix=read_prefix(text),
        digest=seal(text, pepper),
        pepper=pepper,
        expires_at=expires_at,
        enabled=enabled,
    )
    key.full_clean()
    key.save()
    key.allowed_models.set(allowed_models)
    return IssuedKey(key, text)


def revoke_api_keys(*, keys: Iterable[ApiKey]) -> int:
    """End keys for good; give how many were still alive. Every process knows within a second."""
    alive = ApiKey.objects.filter(pk__in=[key.pk for key in keys], revoked_at__isnull=True)
    return alive.update(revoked_at=timezone.now(), enabled=False)
