"""Filters of the list of models: whether they can be served, and whether they are."""

from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from models_registry.models import Deployment, Model, ModelVersion, VersionState


class HasVersion(SimpleListFilter):
    """By what became of their versions."""

    title = "version"
    parameter_name = "version"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Name the answers."""
        return [("current", "Can be served"), ("none", "Cannot be served"), ("bad", "Rejected")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> QuerySet[Model]:
        """Choose by it."""
        versions = ModelVersion.objects.filter(model=OuterRef("pk"))
        bad = (VersionState.REJECTED, VersionState.QUARANTINED)
        conditions = {
            "current": Exists(versions.filter(is_current=True)),
            "none": ~Exists(versions.filter(is_current=True)),
            "bad": Exists(versions.filter(state__in=bad)),
        }
        condition = conditions.get(str(self.value()))
        return queryset if condition is None else queryset.filter(condition)


class HasDeployment(SimpleListFilter):
    """By whether somebody can use them."""

    title = "deployment"
    parameter_name = "deployed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Name the answers."""
        return [("yes", "Deployed"), ("no", "Not deployed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> QuerySet[Model]:
        """Choose by it."""
        is_deployed = Exists(Deployment.objects.filter(model=OuterRef("pk"), enabled=True))
        if self.value() not in ("yes", "no"):
            return queryset
        return queryset.filter(is_deployed if self.value() == "yes" else ~is_deployed)
