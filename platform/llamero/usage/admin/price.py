"""Prices beside the model that they are of."""

from typing import Any

from django.contrib import admin
from django.forms import BaseInlineFormSet, ModelForm
from unfold.admin import TabularInline

# Whose page shows prices must be registered before.
import models_registry.admin  # noqa: F401
from llamero.usage.models import ModelPrice
from models_registry.models import Model


class PriceForm(ModelForm):  # type: ignore[type-arg]
    """A price that has begun to be valid can be read, and no more."""

    class Meta:
        model = ModelPrice
        fields = ("input", "cached_input", "output", "currency", "valid_from")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.has_begun:
            for field in self.fields.values():
                field.disabled = True


class PriceFormSet(BaseInlineFormSet):  # type: ignore[type-arg]
    """The prices of a model; only those that have not begun can be taken back."""

    def add_fields(self, form: Any, index: int | None) -> None:
        """Let the box that deletes be of no use to the others."""
        super().add_fields(form, index)
        if form.instance.has_begun and "DELETE" in form.fields:
            form.fields["DELETE"].disabled = True


class PriceInline(TabularInline):  # type: ignore[misc]
    """The prices of a model, the newest first."""

    model = ModelPrice
    form = PriceForm
    formset = PriceFormSet
    extra = 0
    verbose_name_plural = "prices"
    template_before = "usage/prices_note.html"


_page: Any = admin.site.get_model_admin(Model)
_page.inlines = (*_page.inlines, PriceInline)
