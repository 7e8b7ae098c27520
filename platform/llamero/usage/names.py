"""What keys, users, teams and models are called: now, or when the ledger last heard of them."""

from collections.abc import Iterable

from django.contrib.auth import get_user_model
from django.db.models import Max

from llamero.accounts.models import ApiKey, Team
from llamero.usage.models import LedgerRow
from llamero.usage.models.ledger import NO_ONE
from models_registry.models import Model


def find_names(kind: str, ids: Iterable[int]) -> dict[int, str]:
    """Give the names of some ``key``, ``user``, ``team`` or ``model``: three queries at most."""
    wanted = set(ids) - {NO_ONE}
    if not wanted:
        return {}
    user = get_user_model()
    manager, field = {
        "key": (ApiKey._default_manager, "name"),
        "user": (user._default_manager, user.USERNAME_FIELD),
        "team": (Team._default_manager, "name"),
        "model": (Model._default_manager, "slug"),
    }[kind]
    found = manager.filter(pk__in=wanted).values_list("pk", field)
    names = {pk: str(name) for pk, name in found}
    return names | _read_old_names(kind, wanted - names.keys())


def _read_old_names(kind: str, ids: set[int]) -> dict[int, str]:
    if not ids:
        return {}
    rows = LedgerRow.objects.filter(**{f"{kind}_id__in": ids}).order_by()
    last = rows.values(f"{kind}_id").annotate(last=Max("pk")).values_list("last", flat=True)
    named = LedgerRow.objects.filter(pk__in=list(last)).values_list(f"{kind}_id", f"{kind}_name")
    return {pk: name or f"{kind} {pk}" for pk, name in named}
