"""Issue, find and revoke the tokens with which worker machines fetch model files."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from llamero.accounts.key_text import (
    is_sealed_as,
    make_key_text,
    newest_pepper,
    read_prefix,
    seal,
)
from llamero.audit.recording import recorded
from llamero.control.models import NodeToken
from llamero.expiring_cache import ExpiringCache

KIND = "lln"
_LAST_USED_STEP = timedelta(minutes=1)
_NO_DIGEST = "0" * 64

# One second, so that a revoked token dies everywhere within one.
recent_tokens: ExpiringCache[NodeToken] = ExpiringCache(lifetime_seconds=1.0)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token and, this once, its text."""

    token: NodeToken
    secret_text: str = field(repr=False)


def issue_node_token(*, name: str) -> IssuedToken:
    """Make a token. Its text is in the result and nowhere else: show it and forget it."""
    text, pepper = make_key_text(KIND), newest_pepper()
    token = NodeToken(
        name=name, prefix=read_prefix(text, KIND), digest=seal(text, pepper), pepper=pepper
    )
    token.full_clean()
    token.save()
    return IssuedToken(token, text)


def revoke_node_tokens(*, tokens: Iterable[NodeToken]) -> int:
    """End tokens for good; give how many were still alive."""
    alive = NodeToken.objects.filter(pk__in=[one.pk for one in tokens], revoked_at__isnull=True)
    with recorded(alive):
        return alive.update(revoked_at=timezone.now())


def find_node_token(text: str) -> NodeToken | None:
    """Find a token that is good now; None for unknown, wrong and revoked ones alike."""
    cache_key = seal(text, newest_pepper())
    return recent_tokens.recall(cache_key, lambda: _read_token(text))


def _read_token(text: str) -> NodeToken | None:
    """Ask the database. A token that is not there is compared too, so that it takes as long."""
    token = NodeToken.objects.filter(prefix=read_prefix(text, KIND)).first()
    pepper, digest = (token.pepper, token.digest) if token else (newest_pepper(), _NO_DIGEST)
    if not is_sealed_as(text, pepper, digest) or token is None or token.revoked_at is not None:
        return None
    now = timezone.now()
    is_due = Q(last_used_at__isnull=True) | Q(last_used_at__lte=now - _LAST_USED_STEP)
    NodeToken.objects.filter(is_due, pk=token.pk).update(last_used_at=now)
    return token
