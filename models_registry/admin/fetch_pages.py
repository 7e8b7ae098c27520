"""The pages for files that the server fetches: from URLs, and from the Hugging Face hub."""

import re
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.generic import FormView

from models_registry.admin.bringing_page import BringingPage, WishPage
from models_registry.admin.fetch_forms import FetchForm, HubForm, RepositoryForm
from models_registry.admin.wish_form import WishForm
from models_registry.incoming.assembling import wish_import
from models_registry.incoming.fetching.addresses import FetchRefused
from models_registry.incoming.fetching.hub import HubFile, Repository, list_repository
from models_registry.incoming.receiving import SEES_FILES
from models_registry.incoming.refusal import UploadRefused
from models_registry.incoming.sources import FetchedFile, add_fetched_files, choose_files
from models_registry.models import ModelImport
from models_registry.sizes import filesizeformat
from models_registry.tasks import ask_for_fetch, go_on

_SHARD_END = re.compile(r"-(\d{5})-of-(\d{5})\.gguf\Z")


class FetchPage(WishPage):
    """Have the server fetch files from URLs."""

    way = "fetch"
    template_name = "models_registry/fetch.html"
    form_class = FetchForm

    def form_valid(self, form: FetchForm) -> HttpResponse:
        """Begin, and go where it can be watched."""
        found = begin_fetch(self.request, form, form.cleaned_data["urls"], "urls")
        return found or self.form_invalid(form)


class HubPage(BringingPage, FormView):  # type: ignore[type-arg]
    """Choose a repository, then files of it: the address names the repository."""

    way = "hub"
    template_name = "models_registry/hub.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Look into the repository that was named, if it was."""
        self.repository: Repository | None = None
        self.problem = ""
        asked = request.POST if request.method == "POST" else request.GET
        self.search = RepositoryForm(asked if asked.get("repository") else None)
        if request.user.has_perm(self.permission_required[0]) and self.search.is_valid():
            try:
                self.repository = list_repository(
                    self.search.cleaned_data["repository"], self.search.cleaned_data["revision"]
                )
            except FetchRefused as error:
                self.problem = str(error)
        return super().dispatch(request, *args, **kwargs)

    def get_form(self, form_class: Any = None) -> HubForm:
        """Offer the files that are there."""
        found = self.repository
        choices = list_choices(found.files) if found else []
        initial = {"repository": found.name, "revision": found.commit} if found else {}
        data = self.request.POST if self.request.method == "POST" else None
        return HubForm(data, choices=choices, initial=initial, user=self.request.user)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add what the template shows."""
        more = {
            "search": self.search,
            "problem": self.problem,
            "repository": self.repository,
        }
        return {**super().get_context_data(**kwargs), **more}

    def form_valid(self, form: HubForm) -> HttpResponse:
        """Begin, and go where it can be watched."""
        assert self.repository is not None, "files can only be chosen of what was found"
        try:
            files = choose_files(self.repository, form.cleaned_data["names"])
        except FetchRefused as error:
            form.add_error("names", str(error))
            return self.form_invalid(form)
        return begin_fetch(self.request, form, files, "names") or self.form_invalid(form)


def begin_fetch(
    request: HttpRequest, form: WishForm, files: Sequence[FetchedFile], field: str
) -> HttpResponse | None:
    """Begin an import of files that are fetched; None where the form has an error now."""
    assert request.user.pk is not None
    try:
        with transaction.atomic():
            model_import = ModelImport.objects.create(owner=f"user:{request.user.pk}")
            uploads = add_fetched_files(
                model_import, files, sees_files=request.user.has_perm(SEES_FILES)
            )
            wish_import(model_import, form.wish())
    except UploadRefused as error:
        form.add_error(field, error.message)
        return None
    except ValidationError as error:
        form.show_error(error, field)
        return None
    for upload in uploads:
        ask_for_fetch(upload.pk)
    go_on(model_import)
    page = reverse("admin:models_registry_model_upload")
    return HttpResponseRedirect(f"{page}?import={model_import.id}")


def list_choices(files: Sequence[HubFile]) -> list[tuple[str, str]]:
    """Offer files with their sizes; the shards of a set as one, under the first one's name."""
    sizes: dict[str, int] = {}
    counts: dict[str, int] = {}
    for file in files:
        first = _SHARD_END.sub(lambda found: f"-00001-of-{found[2]}.gguf", file.name)
        sizes[first] = sizes.get(first, 0) + file.size_bytes
        counts[first] = counts.get(first, 0) + 1
    return [(name, _describe(name, counts[name], size)) for name, size in sizes.items()]


def _describe(name: str, count: int, size: int) -> str:
    shards = f", {count} shards" if count > 1 else ""
    return f"{name} ({filesizeformat(size)}{shards})"
