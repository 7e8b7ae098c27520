"""The ledger in the admin: found and read, never changed."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.decorators import display

from llamero.read_only_admin import ReadOnlyAdmin
from llamero.usage.models import JobText, LedgerRow
from llamero.usage.money import write_money
from llamero.usage.texts import unpack_text
from models_registry.models import Model

MAX_SHOWN_TEXT = 20_000
_OUTCOMES = {
    "eos": ("success", "ended"),
    "stop": ("success", "stop word"),
    "length": ("info", "length"),
    "cancelled": ("warning", "cancelled"),
    "error": ("danger", "failed"),
}
_PERIODS = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24}


class PeriodFilter(admin.SimpleListFilter):
    """By when jobs ended."""

    title, parameter_name = "ended", "ended"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Name the periods."""
        return [(name, f"in the last {name}") for name in _PERIODS]

    def queryset(self, request: Any, queryset: QuerySet[LedgerRow]) -> QuerySet[LedgerRow]:
        """Keep what is within."""
        hours = _PERIODS.get(self.value() or "")
        if hours is None:
            return queryset
        return queryset.filter(ended_at__gte=timezone.now() - timedelta(hours=hours))


class OutcomeFilter(admin.SimpleListFilter):
    """By how jobs ended: a list that needs no look at all rows."""

    title, parameter_name = "outcome", "finish_reason"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Name the outcomes."""
        return [(name, words) for name, (_, words) in _OUTCOMES.items()]

    def queryset(self, request: Any, queryset: QuerySet[LedgerRow]) -> QuerySet[LedgerRow]:
        """Keep those."""
        return queryset.filter(finish_reason=self.value()) if self.value() else queryset


class ModelFilter(admin.SimpleListFilter):
    """By the model, of those there are."""

    title, parameter_name = "model", "model"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Name the models."""
        return [(str(pk), slug) for pk, slug in Model.objects.values_list("pk", "slug")]

    def queryset(self, request: Any, queryset: QuerySet[LedgerRow]) -> QuerySet[LedgerRow]:
        """Keep its rows."""
        value = self.value() or ""
        return queryset.filter(model_id=int(value)) if value.isdecimal() else queryset


@admin.register(LedgerRow)
class LedgerRowAdmin(ReadOnlyAdmin):
    """Rows by their end, the last first. Texts are for those who may read them alone."""

    list_display = (
        "ended_at",
        "outcome",
        "model_name",
        "shown_key",
        "user_name",
        "num_prompt_tokens",
        "num_completion_tokens",
        "shown_cost",
        "ttft_ms",
        "duration_ms",
    )
    list_filter = (PeriodFilter, OutcomeFilter, ModelFilter)
    search_fields = ("=job", "=request_id")
    search_help_text = "The id of a job or of a request"
    list_per_page = 50
    show_full_result_count = False
    list_disable_select_all = True

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Show everything, and the texts to those who may read them."""
        hidden = {"id", "cost", "currency"}
        fields = [one.name for one in LedgerRow._meta.concrete_fields if one.name not in hidden]
        fields.append("shown_cost")
        if request.user.has_perm("usage.view_jobtext"):
            fields += ["prompt", "answer"]
        return fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Let nothing be written."""
        return self.get_fields(request, obj)

    @display(description="Outcome", label={words: kind for kind, words in _OUTCOMES.values()})  # type: ignore[untyped-decorator]
    def outcome(self, row: LedgerRow) -> str:
        """Show how it ended."""
        return _OUTCOMES.get(row.finish_reason, ("", row.finish_reason))[1]

    @display(description="Key")  # type: ignore[untyped-decorator]
    def shown_key(self, row: LedgerRow) -> str:
        """Show whose key, or that there was none."""
        return row.key_name or ("-" if not row.key_id else str(row.key_id))

    @display(description="Cost")  # type: ignore[untyped-decorator]
    def shown_cost(self, row: LedgerRow) -> str:
        """Show the exact amount."""
        return "-" if row.cost is None else f"{write_money(row.cost)} {row.currency}"

    @display(description="Prompt")  # type: ignore[untyped-decorator]
    def prompt(self, row: LedgerRow) -> str:
        """Show what was asked, where it is kept."""
        return _show_text(row, "prompt")

    @display(description="Answer")  # type: ignore[untyped-decorator]
    def answer(self, row: LedgerRow) -> str:
        """Show what was answered, where it is kept."""
        return _show_text(row, "answer")


def _show_text(row: LedgerRow, name: str) -> str:
    kept = JobText.objects.filter(row=row, expires_at__gt=timezone.now()).first()
    if kept is None:
        return "not kept"
    text = unpack_text(getattr(kept, name))
    return text if len(text) <= MAX_SHOWN_TEXT else text[:MAX_SHOWN_TEXT] + " …"
