"""What is asked wherever files come in: which model they are to become."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from models_registry.admin.few_choices import FewChoicesSelect
from models_registry.models import Model, ModelVersion
from models_registry.models.model import KIND_CHOICES
from models_registry.names import MAX_NAME_LENGTH, normalize_name, validate_published_name


class WishForm(forms.Form):
    """A new model, or a version of an old one."""

    model = forms.ModelChoiceField(
        Model.objects.all(),
        required=False,
        label="Add a version to",
        empty_label="A new model",
        widget=FewChoicesSelect(ModelVersion, "model"),
    )
    slug = forms.CharField(
        label="Published id",
        required=False,
        max_length=MAX_NAME_LENGTH,
        widget=UnfoldAdminTextInputWidget(),
        help_text="For a new model: what clients send as “model”, such as smollm2-135m-instruct.",
    )
    title = forms.CharField(
        label="Title", required=False, max_length=200, widget=UnfoldAdminTextInputWidget()
    )
    kind = forms.ChoiceField(
        label="Kind",
        required=False,
        choices=[("", "As the file suggests"), *KIND_CHOICES],
        widget=UnfoldAdminSelectWidget(),
    )
    deploy = forms.BooleanField(
        label="Deploy it when it is ready",
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget(),
    )

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not user.has_perm("models_registry.view_model"):
            self.fields["model"].queryset = Model.objects.none()  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Ask for an id where a new model is to be made."""
        values: dict[str, Any] = super().clean() or {}
        if values.get("model") is not None:
            return values
        slug = normalize_name(values.get("slug", ""))
        if not slug:
            self.add_error("slug", "A new model needs a published id.")
            return values
        try:
            validate_published_name(slug)
        except ValidationError as error:
            self.add_error("slug", error)
        return {**values, "slug": slug}

    def wish(self) -> dict[str, object]:
        """Give what was asked for, as imports take it."""
        values = self.cleaned_data
        model = values["model"]
        return {
            "model": model.slug if model else values["slug"],
            "title": values["title"],
            "kind": values["kind"],
            "is_new_version": model is not None,
            "is_deployed": values["deploy"],
        }

    def show_error(self, error: ValidationError, files_field: str) -> None:
        """Put an error beside its field; what is wrong with files belongs to theirs."""
        if not hasattr(error, "error_dict"):
            self.add_error(files_field, error)
            return
        for name, errors in error.error_dict.items():
            named = {"model": "slug", "files": files_field}.get(name, name)
            self.add_error(named if named in self.fields else None, errors)
