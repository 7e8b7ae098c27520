"""What offers rows of another table: all of them while they are few, and a search of many."""

from functools import cached_property
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminSelectWidget

from models_registry.admin.search_box import SearchBox

MAX_CHOICES = 200


def are_few(rows: QuerySet[Any]) -> bool:
    """Whether a page can list them. Of thousands it would be megabytes."""
    return rows.order_by()[: MAX_CHOICES + 1].count() <= MAX_CHOICES


class FewChoicesFilter(admin.RelatedFieldListFilter):
    """Offers those rows while they are few: one of many is found by searching the list."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        """List them, or none."""
        if not are_few(field.related_model._default_manager.all()):
            return []
        return super().field_choices(field, request, model_admin)


class FewChoicesSelect(forms.Select):
    """Lists the rows of its field while they are few; of many it is a box that searches.

    The search is the admin's: it finds what somebody may see in the lists there. Which rows are
    meant it knows by any foreign key to them.
    """

    def __init__(self, model: type[Model], foreign_key: str) -> None:
        super().__init__()
        self._foreign_key = model._meta.get_field(foreign_key)

    @cached_property
    def _drawn(self) -> forms.Select:
        """The one or the other: each form has a copy of this widget."""
        offered: Any = self.choices
        field, empty_label = offered.field, offered.field.empty_label or ""
        rows = list(offered.queryset[: MAX_CHOICES + 1])
        if len(rows) <= MAX_CHOICES:
            named = [(field.prepare_value(row), field.label_from_instance(row)) for row in rows]
            plain: forms.Select = UnfoldAdminSelectWidget(choices=[("", empty_label), *named])
            return plain
        box = SearchBox(self._foreign_key, admin.site, choices=offered)
        box.is_required = self.is_required
        box.placeholder = empty_label
        return box

    @property
    def media(self) -> forms.Media:
        """Scripts, where it searches."""
        return self._drawn.media

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Draw it."""
        return self._drawn.render(name, value, attrs, renderer)
