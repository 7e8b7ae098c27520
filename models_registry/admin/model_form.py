"""The form of a model."""

from django import forms


class ModelForm(forms.ModelForm):  # type: ignore[type-arg]
    """Names, kind, description; what else a page shows comes from its versions."""

    class Media:
        css = {"all": ("models_registry/pages.css",)}  # noqa: RUF012 - Django's own declaration
        js = ("models_registry/live_part.js",)
