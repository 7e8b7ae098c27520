"""Boxes that search for rows of another table."""

from typing import Any

from django.contrib.admin.widgets import AutocompleteSelect, AutocompleteSelectMultiple
from django.core.exceptions import ValidationError
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest

# Keys of rows have 64 bits: so many digits always fit.
_MAX_DIGITS = 18


def is_row_key(text: str) -> bool:
    """Whether something sent can be the key of a row; databases fail over what cannot."""
    return text.isdecimal() and len(text) <= _MAX_DIGITS


class _NamesChosen:
    """Shows a box with what was sent for it, whatever that was."""

    def optgroups(self, name: str, value: Any, attr: Any = None) -> Any:
        """Name what is chosen, as far as it can be a row."""
        return super().optgroups(name, list(filter(is_row_key, value)), attr)  # type: ignore[misc]


class SearchBox(_NamesChosen, AutocompleteSelect):
    """Chooses one row."""

    placeholder = ""

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> dict[str, Any]:
        """Say what nothing chosen means."""
        attrs: dict[str, Any] = super().build_attrs(base_attrs, extra_attrs)
        return attrs | {"data-placeholder": self.placeholder}


class ManySearchBox(_NamesChosen, AutocompleteSelectMultiple):
    """Chooses several rows."""

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> dict[str, Any]:
        """Leave out the button that clears all: it is no item of the list that it is drawn in."""
        attrs: dict[str, Any] = super().build_attrs(base_attrs, extra_attrs)
        return attrs | {"data-allow-clear": "false"}


class ManyRowsField(ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Several rows, by their keys."""

    def clean(self, value: Any) -> Any:
        """Refuse what is no key before the database is asked."""
        for one in value or ():
            if not is_row_key(str(one)):
                message = self.error_messages["invalid_pk_value"]
                raise ValidationError(message, code="invalid_pk_value", params={"pk": one})
        return super().clean(value)


class SearchBoxes:
    """Draws ``autocomplete_fields`` with these boxes: a mixin for pages, and for tables in them."""

    admin_site: Any

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Search where a list may be long."""
        if db_field.name in self.get_autocomplete_fields(request):  # type: ignore[attr-defined]
            kwargs.setdefault("widget", SearchBox(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]
