"""What the import page asks, and which files it may touch."""

from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from models_registry.models import Model
from models_registry.models.model import KIND_CHOICES
from models_registry.names import (
    MAX_NAME_LENGTH,
    normalize_name,
    shard_names,
    validate_published_name,
)

MAX_LISTED_FILES = 500


def list_importable_files() -> list[Path]:
    """List GGUF files of the allowed folders, sorted; links and hidden files are left out."""
    found: list[Path] = []
    for folder in settings.IMPORT_DIRS:
        paths = sorted(folder.rglob("*.gguf")) if folder.is_dir() else []
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
    return found[:MAX_LISTED_FILES]


def find_shards(path: Path) -> list[Path]:
    """Give all shards of the set that ``path`` names, those that are there; else ``path`` alone."""
    shards = (path.with_name(name) for name in shard_names(path.name))
    return [shard for shard in shards if shard.exists()] or [path]


class ImportForm(forms.Form):
    """A path in an allowed folder, and what to call the model."""

    path = forms.CharField(
        label="File on the server",
        max_length=4096,
        widget=UnfoldAdminTextInputWidget({"list": "importable-files", "autocomplete": "off"}),
        help_text="A GGUF file in one of the allowed folders. Of a split model, any shard.",
    )
    model = forms.ModelChoiceField(
        Model.objects.all(),
        required=False,
        label="Add a version to",
        empty_label="A new model",
        widget=UnfoldAdminSelectWidget(),
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

    def clean_path(self) -> Path:
        """Resolve the path; it must lie in an allowed folder and must not be a link."""
        path = Path(self.cleaned_data["path"])
        folders = [folder.resolve() for folder in settings.IMPORT_DIRS]
        if not path.is_absolute() and folders:
            path = folders[0] / path
        resolved = path.resolve()
        if not any(resolved.is_relative_to(folder) for folder in folders):
            raise ValidationError("This is not in a folder that imports are allowed from.")
        if path.is_symlink():
            raise ValidationError("This is a link: give the file itself.")
        if not resolved.is_file():
            raise ValidationError("There is no such file.")
        return resolved

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
