"""Limits in the admin: beside whose they are, and all in a list."""

from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.utils.formats import localize
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from unfold.admin import ModelAdmin, StackedInline
from unfold.decorators import display

# Whose pages show limits must be registered before.
import llamero.accounts.admin  # noqa: F401
import models_registry.admin  # noqa: F401
from llamero.accounts.models import ApiKey, Team
from llamero.accounts.targets import TARGETS
from llamero.limits.left import read_left
from llamero.limits.models import LimitSet
from llamero.usage.money import write_money
from models_registry.admin.search_box import SearchBoxes
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
    "left",
)
_FIELDSETS = (
    (None, {"fields": _RATES}),
    ("Budgets", {"fields": _BUDGETS}),
)
# What the list says of each limit that is set, by column.
_A_MINUTE = {
    "requests_per_minute": "request{s}",
    "tokens_per_minute": "token{s}",
    "input_tokens_per_minute": "prompt token{s}",
    "output_tokens_per_minute": "answer token{s}",
}
_REQUESTS = {
    "concurrent_requests": "at once",
    "queued_requests": "queued",
    "tokens_per_request": "token{s} each",
}
_A_PERIOD = {
    "tokens_per_day": "token{s} a day",
    "tokens_per_month": "token{s} a month",
    "money_per_day": "in money a day",
    "money_per_month": "in money a month",
}


class ShowsLeft:
    """Shows beside limits what is left of their budgets: a mixin for the admin."""

    @display(description="What is left")  # type: ignore[untyped-decorator]
    def left(self, limits: LimitSet) -> SafeString | str:
        """Show each budget; the last seconds are not in it yet."""
        lines = read_left(Q(pk=limits.pk)) if limits.pk else ()
        words = "{}: {} ({} % used), until {}"
        shown = ((one.name, one.words, one.percent_used, localize(one.ends)) for one in lines)
        return format_html_join(mark_safe("<br>"), words, shown) or "No budget is set."


class LimitsInline(ShowsLeft, StackedInline):  # type: ignore[misc]
    """The limits of what a page is about."""

    model = LimitSet
    readonly_fields = ("left",)
    fieldsets = _FIELDSETS
    extra = 0
    max_num = 1
    verbose_name = verbose_name_plural = "limits"


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
class LimitSetAdmin(ShowsLeft, SearchBoxes, ModelAdmin):  # type: ignore[misc]
    """All limits there are; those of all together are made here."""

    list_display = ("target", "a_minute", "requests", "budgets", "updated_at")
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

    @display(description="A minute")  # type: ignore[untyped-decorator]
    def a_minute(self, limits: LimitSet) -> str:
        """Show what each minute may bring."""
        return _list_set(limits, _A_MINUTE)

    @display(description="Requests")  # type: ignore[untyped-decorator]
    def requests(self, limits: LimitSet) -> str:
        """Show how many there may be, and how large."""
        return _list_set(limits, _REQUESTS)

    @display(description="Budgets")  # type: ignore[untyped-decorator]
    def budgets(self, limits: LimitSet) -> str:
        """Show what each period may use."""
        return _list_set(limits, _A_PERIOD)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Leave limits with whose they are."""
        return ("left", *TARGETS) if obj else ("left",)


def _list_set(limits: LimitSet, words: dict[str, str]) -> str:
    """List the limits that are set: a list of all of them would be wider than screens are."""
    amounts = ((getattr(limits, name), unit) for name, unit in words.items())
    return ", ".join(_write(amount, unit) for amount, unit in amounts if amount) or "-"


def _write(amount: int | Decimal, unit: str) -> str:
    number = write_money(amount) if isinstance(amount, Decimal) else f"{amount:,}"
    return f"{number} {unit.format(s=pluralize(amount))}"
