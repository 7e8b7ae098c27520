"""What the pages ask whose files the server fetches by itself."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from models_registry.admin.wish_form import WishForm
from models_registry.incoming.fetching.addresses import FetchRefused
from models_registry.incoming.receiving import is_sha256
from models_registry.incoming.sources import FetchedFile, file_at
from models_registry.names import shown_url

MAX_URLS = 64


class FetchForm(WishForm):
    """URLs, one a line, each perhaps with a hash behind it."""

    urls = forms.CharField(
        label="URLs",
        max_length=200_000,
        widget=UnfoldAdminTextareaWidget({"rows": 4, "spellcheck": "false"}),
        help_text="One a line: all shards of a split model, its adapters, its projector. Behind a "
        "URL its SHA-256 may follow. Addresses inside this network are refused.",
    )
    field_order = ("urls", "model")

    def clean_urls(self) -> list[FetchedFile]:
        """Read the lines."""
        lines = [line.split() for line in self.cleaned_data["urls"].splitlines() if line.strip()]
        if len(lines) > MAX_URLS:
            raise ValidationError(f"These are more than {MAX_URLS} URLs.")
        files: list[FetchedFile] = []
        mistakes: list[ValidationError] = []
        for line in lines:
            try:
                files.append(_read_line(*line))
            except ValidationError as error:
                mistakes.append(error)
        if mistakes:
            raise ValidationError(mistakes)
        return files


class RepositoryForm(forms.Form):
    """A repository of the hub."""

    repository = forms.CharField(
        label="Repository",
        max_length=200,
        widget=UnfoldAdminTextInputWidget({"placeholder": "owner/name", "spellcheck": "false"}),
    )
    revision = forms.CharField(
        label="Revision",
        max_length=200,
        required=False,
        widget=UnfoldAdminTextInputWidget({"placeholder": "main"}),
        help_text="A branch, a tag or a commit.",
    )


class HubForm(WishForm):
    """Files of a repository, at the commit that they were listed at."""

    repository = forms.CharField(max_length=200, widget=forms.HiddenInput)
    revision = forms.CharField(max_length=200, widget=forms.HiddenInput)
    names = forms.MultipleChoiceField(
        label="Files", widget=UnfoldAdminCheckboxSelectMultipleWidget(), choices=()
    )
    field_order = ("repository", "revision", "names", "model")

    def __init__(self, *args: Any, choices: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["names"].choices = choices  # type: ignore[attr-defined]


def _read_line(url: str, sha256: str = "", *more: str) -> FetchedFile:
    if more or (sha256 and not is_sha256(sha256.lower())):
        shown = shown_url(url)[:200]
        words = "must be its SHA-256 alone, 64 hexadecimal digits, or nothing"
        raise ValidationError(f"{shown}: behind it {words}.")
    try:
        return file_at(url, sha256=sha256.lower())
    except FetchRefused as error:
        raise ValidationError(f"{shown_url(url)[:200]}: {error}") from error
