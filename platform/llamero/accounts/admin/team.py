"""Teams in the admin."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display

from llamero.accounts.models import ApiKey, Membership, Team
from models_registry.admin.search_box import SearchBoxes


class MembershipInline(SearchBoxes, TabularInline):  # type: ignore[misc]
    """Who is in a team, and what for."""

    model = Membership
    autocomplete_fields = ("user",)
    extra = 0
    fields = ("user", "role", "created_at")
    readonly_fields = ("created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        """Read the users with them."""
        members: QuerySet[Membership] = super().get_queryset(request)
        return members.select_related("user", "team")


@admin.register(Team)
class TeamAdmin(ModelAdmin):  # type: ignore[misc]
    """Who works together; their keys are listed with the keys."""

    list_display = ("name", "is_active", "num_members", "num_keys", "created_at")
    list_filter = ("is_active",)
    search_fields = ("name", "memberships__user__username")
    fields = ("name", "is_active", "created_at")
    readonly_fields = ("created_at",)
    inlines = (MembershipInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Team]:
        """Count what belongs to each."""
        teams: QuerySet[Team] = super().get_queryset(request)
        return teams.annotate(num_members=_count(Membership), num_keys=_count(ApiKey))

    @display(description="Members", ordering="num_members")  # type: ignore[untyped-decorator]
    def num_members(self, team: Team) -> int:
        """Show how many."""
        return team.num_members  # type: ignore[attr-defined,no-any-return]

    @display(description="Keys", ordering="num_keys")  # type: ignore[untyped-decorator]
    def num_keys(self, team: Team) -> int:
        """Show how many."""
        return team.num_keys  # type: ignore[attr-defined,no-any-return]


def _count(model: Any) -> Coalesce:
    """Count a team's rows in a query of their own: joined, members would multiply keys."""
    rows = model.objects.filter(team=OuterRef("pk")).order_by().values("team")
    return Coalesce(Subquery(rows.annotate(count=Count("pk")).values("count")), 0)
