"""Limits in the admin: beside whose they are, and all in a list."""

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from unfold.admin import ModelAdmin, StackedInline
from unfold.decorators import display

# Whose pages show limits must be registered before.
import llamero.accounts.admin  # noqa: F401
import models_registry.admin  # noqa: F401
from llamero.accounts.models import ApiKey, Team
from llamero.accounts.targets import TARGETS
from llamero.limits.models import LimitSet
from models_registry.models import Model

_RATES = (
    ("requests_per_minute", "tokens_per_minute"),
    ("input_tokens_per_minute", "output_tokens_per_minute"),
    ("concurrent_requests", "queued_requests"),
    "tokens_per_request",
)
_BUDGETS = (
    ("tokens_per_day", "tokens_per_month"),
    ("money_per_day", "money_per_month"),
    "time_zone",
)
_FIELDSETS = (
    (None, {"fields": _RATES}),
    ("Budgets", {"fields": _BUDGETS}),
)
SHOWN = (
    "requests_per_minute",
    "tokens_per_minute",
    "concurrent_requests",
    "tokens_per_day",
    "tokens_per_month",
    "money_per_month",
)


class LimitsInline(StackedInline):  # type: ignore[misc]
    """The limits of what a page is about."""

    model = LimitSet
    fieldsets = _FIELDSETS
    extra = 0
    max_num = 1
    verbose_name_plural = "limits"


class KeyLimitsInline(LimitsInline):
    """Those of a key."""

    fk_name = "key"


class UserLimitsInline(LimitsInline):
    """Those of a user."""

    fk_name = "user"


class TeamLimitsInline(LimitsInline):
    """Those of a team."""

    fk_name = "team"


class ModelLimitsInline(LimitsInline):
    """Those of a model."""

    fk_name = "model"


_PAGES: dict[type, type[LimitsInline]] = {
    ApiKey: KeyLimitsInline,
    get_user_model(): UserLimitsInline,
    Team: TeamLimitsInline,
    Model: ModelLimitsInline,
}
for _model, _inline in _PAGES.items():
    _page: Any = admin.site.get_model_admin(_model)
    _page.inlines = (*_page.inlines, _inline)


@admin.register(LimitSet)
class LimitSetAdmin(ModelAdmin):  # type: ignore[misc]
    """All limits there are; those of all together are made here."""

    list_display = ("target", *SHOWN, "updated_at")
    list_select_related = TARGETS
    search_fields = ("key__name", "key__prefix", "user__username", "team__name", "model__slug")
    autocomplete_fields = TARGETS
    fieldsets = (
        (
            None,
            {
                "fields": TARGETS,
                "description": "Whose they are: choose one. Without any they are of all together.",
            },
        ),
        *_FIELDSETS,
    )

    @display(description="Of")  # type: ignore[untyped-decorator]
    def target(self, limits: LimitSet) -> str:
        """Show whose they are."""
        return limits.shown_target

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Leave limits with whose they are."""
        return TARGETS if obj else ()
