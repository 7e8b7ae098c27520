"""Filters of the list of deployments."""

from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from models_registry.models import Deployment, DeploymentState


class NeedsAttention(SimpleListFilter):
    """Those that somebody should look at."""

    title = "attention"
    parameter_name = "attention"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Name what may be wrong."""
        return [("bad", "Failed or waiting"), ("error", "Had an error"), ("drain", "Draining")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Deployment]
    ) -> QuerySet[Deployment]:
        """Choose by it."""
        bad = (DeploymentState.FAILED, DeploymentState.PENDING)
        conditions = {
            "bad": Q(enabled=True, state__in=bad),
            "error": Q(last_error_at__isnull=False),
            "drain": Q(is_draining=True),
        }
        condition = conditions.get(str(self.value()))
        return queryset if condition is None else queryset.filter(condition)
