"""The audit log in the admin: searched, filtered, read."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import FieldTextFilter, RangeDateTimeFilter
from unfold.decorators import display

from llamero.audit.models import Action, Change
from llamero.audit.names import name_field, name_kind
from llamero.audit.watched import WATCHED
from llamero.read_only_admin import ReadOnlyAdmin

_HEADINGS = (("Field",), ("Before",), ("After",))
_COLOURS = {Action.CREATED: "success", Action.CHANGED: "info", Action.DELETED: "danger"}


class KindFilter(admin.SimpleListFilter):
    """Offers the kinds of things by the names that people know."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Give all kinds that are watched, by name."""
        kinds = [label.lower() for label in WATCHED]
        return sorted(((kind, name_kind(kind)) for kind in kinds), key=lambda one: one[1].lower())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Change]) -> QuerySet[Change]:
        """Keep the chosen kind."""
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(Change)
class ChangeAdmin(ReadOnlyAdmin):
    """Nobody adds to it, changes it or deletes from it here."""

    list_display = (
        "shown_at",
        "shown_actor",
        "action_label",
        "shown_kind",
        "object_text",
        "fields_changed",
    )
    list_filter = (
        ("at", RangeDateTimeFilter),
        ("actor_name", FieldTextFilter),
        KindFilter,
        "action",
        "source",
    )
    list_filter_submit = True
    search_fields = ("actor_name", "object_text", "=object_id", "address")
    search_help_text = "Who, what, its id, or an address"
    date_hierarchy = "at"
    show_full_result_count = False
    list_per_page = 50
    fields = (
        "shown_at",
        "shown_actor",
        "source",
        "address",
        "action_label",
        "shown_kind",
        "object_id",
        "object_text",
        "differences",
    )
    readonly_fields = fields

    @display(description="At (UTC)", ordering="at")  # type: ignore[untyped-decorator]
    def shown_at(self, change: Change) -> str:
        """Show when it was, to the second."""
        return f"{change.at:%Y-%m-%d %H:%M:%S}"

    @display(description="Who", ordering="actor_name")  # type: ignore[untyped-decorator]
    def shown_actor(self, change: Change) -> str:
        """Show who it was, or that it was the program."""
        return change.actor_name or "the program"

    @display(description="Action", label=_COLOURS)  # type: ignore[untyped-decorator]
    def action_label(self, change: Change) -> tuple[str, str]:
        """Show what became of it."""
        return change.action, change.get_action_display()

    @display(description="Kind", ordering="kind")  # type: ignore[untyped-decorator]
    def shown_kind(self, change: Change) -> str:
        """Show what people call such things."""
        return name_kind(change.kind)

    @display(description="Fields")  # type: ignore[untyped-decorator]
    def fields_changed(self, change: Change) -> str:
        """Name what differs."""
        names = {*change.before, *change.after}
        return ", ".join(sorted(name_field(change.kind, name) for name in names))

    @display(description="Before and after")  # type: ignore[untyped-decorator]
    def differences(self, change: Change) -> SafeString:
        """Show each field that differs."""
        names = sorted({*change.before, *change.after})
        rows = format_html_join(
            "",
            '<tr><th scope="row">{}</th><td>{}</td><td>{}</td></tr>',
            (
                (
                    name_field(change.kind, name),
                    _show(change.before, name),
                    _show(change.after, name),
                )
                for name in names
            ),
        )
        return format_html(
            '<table class="audit-differences"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>',
            format_html_join("", '<th scope="col">{}</th>', _HEADINGS),
            rows,
        )


def _show(values: dict[str, Any], name: str) -> str:
    value = values.get(name, "")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
