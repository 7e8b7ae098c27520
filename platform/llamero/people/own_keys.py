"""Keys that people make and look after themselves, within what the operator allows."""

from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.template.defaultfilters import pluralize
from django.utils import timezone

from llamero.accounts.models import ApiKey, Team
from llamero.accounts.scopes import DEFAULT_SCOPES, Scope
from llamero.accounts.services import IssuedKey, issue_api_key
from models_registry.models import Model


def allowed_scopes() -> list[Scope]:
    """List the scopes that people may give their keys, in the order in which they are defined."""
    wanted = settings.OWN_KEYS.scopes or DEFAULT_SCOPES
    return [scope for scope in Scope if scope in wanted]


def list_own_keys(user: User) -> list[ApiKey]:
    """List a user's keys, those too that an operator made."""
    keys = ApiKey.objects.with_owner().filter(user=user)
    return list(keys.select_related("team", "user").prefetch_related("allowed_models"))


def find_own_key(user: User, key_id: int) -> ApiKey | None:
    """Find a key of a user."""
    return ApiKey.objects.with_owner().filter(user=user, pk=key_id).first()


def room_for_keys(user: User) -> int:
    """Tell how many more keys a user may make."""
    ended = Q(revoked_at__isnull=False) | Q(expires_at__lte=timezone.now())
    num_alive = ApiKey.objects.filter(user=user, issuer=None).exclude(ended).count()
    return max(0, settings.OWN_KEYS.most - num_alive)


@transaction.atomic
def make_own_key(
    *, user: User, name: str, team: Team | None, days: int, scopes: Iterable[str]
) -> IssuedKey:
    """Make a key for oneself. Its text is in the result and nowhere else.

    Raises ValidationError for what the operator does not allow.
    """
    # Two windows at once make no more keys than one.
    User.objects.select_for_update().get(pk=user.pk)
    rules = settings.OWN_KEYS
    if not room_for_keys(user):
        keys = f"{rules.most} key{pluralize(rules.most)}"
        raise ValidationError(f"You may have {keys}. Revoke one that you do not need.")
    if rules.longest_days and not 0 < days <= rules.longest_days:
        days_at_most = f"{rules.longest_days} day{pluralize(rules.longest_days)}"
        raise ValidationError(f"A key must end within {days_at_most}.")
    chosen = [Scope(scope) for scope in scopes if scope in allowed_scopes()]
    if not chosen:
        raise ValidationError("Choose what the key is for.")
    return issue_api_key(
        user=user,
        team=team,
        name=name,
        expires_at=timezone.now() + timedelta(days=days) if days else None,
        scopes=chosen,
        allowed_models=_find_models(rules.models),
    )


def _find_models(slugs: tuple[str, ...]) -> list[Model]:
    """Find the models that keys may use; a key that lists none may use all, so none is an error."""
    models = list(Model.objects.filter(slug__in=slugs))
    if slugs and not models:
        raise ValidationError("None of the models that keys may use is there. Ask an operator.")
    return models
