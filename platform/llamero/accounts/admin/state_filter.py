"""Keys by what they are worth."""

from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from llamero.accounts.models import ApiKey, KeyState


class StateFilter(SimpleListFilter):
    """Chooses as ``ApiKey.state_at`` tells."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer every state."""
        return [(state.value, str(state.label)) for state in KeyState]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        """Give the keys in the chosen state."""
        is_expired = Q(expires_at__isnull=False, expires_at__lte=timezone.now())
        standing = queryset.filter(~is_expired, revoked_at__isnull=True)
        match self.value():
            case KeyState.REVOKED:
                return queryset.filter(revoked_at__isnull=False)
            case KeyState.EXPIRED:
                return queryset.filter(is_expired, revoked_at__isnull=True)
            case KeyState.DISABLED:
                return standing.filter(enabled=False)
            case KeyState.OWNERLESS:
                return standing.filter(enabled=True, is_owned=False)  # type: ignore[misc]
            case KeyState.ACTIVE:
                return standing.filter(enabled=True, is_owned=True)  # type: ignore[misc]
        return queryset
