"""What the page for files on the server asks, and which files it may touch."""

from pathlib import Path

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from models_registry.admin.wish_form import WishForm
from models_registry.names import shard_names

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


def _find_file(path: Path, folders: list[Path]) -> Path:
    resolved = path.resolve()
    if not any(resolved.is_relative_to(folder) for folder in folders):
        raise ValidationError("This is not in a folder that imports are allowed from.")
    if path.is_symlink():
        raise ValidationError("This is a link: give the file itself.")
    if not resolved.is_file():
        raise ValidationError("There is no such file.")
    return resolved


class ImportForm(WishForm):
    """A path in an allowed folder, and what to call the model."""

    path = forms.CharField(
        label="File on the server",
        max_length=4096,
        widget=UnfoldAdminTextInputWidget({"list": "importable-files", "autocomplete": "off"}),
        help_text="A GGUF file in one of the allowed folders. Of a split model, any shard.",
    )
    how = forms.ChoiceField(
        label="How it is stored",
        required=False,
        choices=[("", "Copied"), ("link", "Hard link: at once, on the same disk")],
        widget=UnfoldAdminSelectWidget(),
        help_text="Whoever may write to a file that is linked can break the model: it is taken out "
        "of service then.",
    )
    field_order = ("path", "how", "model")

    def clean_path(self) -> Path:
        """Resolve the path; it must lie in an allowed folder and must not be a link."""
        path = Path(self.cleaned_data["path"])
        folders = [folder.resolve() for folder in settings.IMPORT_DIRS]
        if not path.is_absolute() and folders:
            path = folders[0] / path
        try:
            return _find_file(path, folders)
        except RuntimeError:
            raise ValidationError("This is a link that leads to itself.") from None
        except OSError as error:
            raise ValidationError(f"This cannot be looked at: {error.strerror}.") from error
