"""Who calls, by the key they show."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Q
from django.utils import timezone

from llamero.accounts.key_text import is_sealed_as, newest_pepper, read_prefix, seal
from llamero.accounts.models import ApiKey, KeyState
from llamero.expiring_cache import ExpiringCache

_LAST_USED_STEP = timedelta(minutes=1)
_NO_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request is from. No ``allowed_models`` means all of them.

    ``priority`` is the class that its jobs wait in.
    """

    user: AbstractBaseUser
    key_id: int | None
    owner: str
    allowed_models: frozenset[int] = frozenset()
    priority: int = 0

    def may_use(self, model_pk: int) -> bool:
        """Whether this caller may use a model."""
        return not self.allowed_models or model_pk in self.allowed_models


# One second, so that a revoked key dies everywhere within one.
recent_callers: ExpiringCache[Caller] = ExpiringCache(lifetime_seconds=1.0)


def find_caller(key_text: str) -> Caller | None:
    """Find who a key belongs to; None for unknown, wrong, ended keys and users alike."""
    cache_key = seal(key_text, newest_pepper())
    return recent_callers.recall(cache_key, lambda: _read_caller(key_text))


def _read_caller(key_text: str) -> Caller | None:
    """Ask the database. A key that is not there is compared too, so that it takes as long."""
    key = ApiKey.objects.select_related("user").filter(prefix=read_prefix(key_text)).first()
    pepper, digest = (key.pepper, key.digest) if key else (newest_pepper(), _NO_DIGEST)
    if not is_sealed_as(key_text, pepper, digest) or key is None:
        return None
    caller = _caller_of(key)
    if caller is not None:
        _note_use(key)
    return caller


def find_key_caller(key_id: int) -> Caller | None:
    """Find who a stored request is from, if the key may still be used."""
    key = ApiKey.objects.select_related("user").filter(pk=key_id).first()
    return None if key is None else _caller_of(key)


def _caller_of(key: ApiKey) -> Caller | None:
    """Give whose a key is; None for one that has ended."""
    if key.state != KeyState.ACTIVE or not key.user.is_active:
        return None
    return Caller(
        user=key.user,
        key_id=key.pk,
        owner=f"key:{key.pk}",
        allowed_models=frozenset(key.allowed_models.values_list("pk", flat=True)),
    )


def _note_use(key: ApiKey) -> None:
    """Write the time of use, at most once a minute whatever the number of processes."""
    now = timezone.now()
    cutoff = now - _LAST_USED_STEP
    if key.last_used_at is not None and key.last_used_at > cutoff:
        return
    is_due = Q(last_used_at__isnull=True) | Q(last_used_at__lte=cutoff)
    ApiKey.objects.filter(is_due, pk=key.pk).update(last_used_at=now)
