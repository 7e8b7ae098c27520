"""Set limits."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from llamero.accounts.models import ApiKey
from llamero.limits.models import LimitSet


@transaction.atomic
def limit_key(*, key: ApiKey, limits: Mapping[str, Any]) -> LimitSet | None:
    """Give a key limits by the names of their columns; None where there are none to give.

    Raises ValidationError.
    """
    given = {name: value for name, value in limits.items() if value is not None}
    if not given:
        return None
    found = LimitSet(key=key, **given)
    found.full_clean()
    found.save()
    return found
