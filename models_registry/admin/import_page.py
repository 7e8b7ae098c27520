"""The page that imports files which lie on the server."""

import logging
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from kombu.exceptions import OperationalError

from inference.protocol.replicas import ModelKind
from models_registry.admin.bringing_page import WishPage
from models_registry.admin.import_form import ImportForm, find_shards, list_importable_files
from models_registry.services.importing import begin_import, withdraw_import
from models_registry.tasks import finish_import_task

logger = logging.getLogger(__name__)


class ImportPage(WishPage):
    """Check names and header at once; store and probe in the control worker."""

    way = "import"
    title = "Import a model"
    template_name = "models_registry/import.html"
    form_class = ImportForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add what the template lists."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        files = [(str(path), path.stat().st_size) for path in list_importable_files()]
        return {
            **context,
            "files": files,
            "folders": settings.IMPORT_DIRS,
        }

    def form_valid(self, form: ImportForm) -> HttpResponse:
        """Begin the import, or show the form again with the reason beside its field."""
        values = form.cleaned_data
        paths = find_shards(values["path"])
        target = values["model"]
        try:
            version = begin_import(
                paths=paths,
                slug=target.slug if target else values["slug"],
                title=values["title"],
                kind=ModelKind(values["kind"]) if values["kind"] else None,
                is_new_version=target is not None,
            )
        except ValidationError as error:
            form.show_error(error, "path")
            return self.form_invalid(form)
        is_linked = values["how"] == "link"
        owner = f"user:{self.request.user.pk}"
        arguments = (version.pk, [str(path) for path in paths], values["deploy"], is_linked, owner)
        try:
            finish_import_task.apply_async(arguments, retry=False)
        except OperationalError:
            logger.warning("No broker to hand an import to")
            withdraw_import(version=version, is_new_version=target is not None)
            form.add_error(None, "The control worker cannot be reached. Try again in a moment.")
            return self.form_invalid(form)
        self.model_admin.log_addition(self.request, version.model, f"Importing {version}.")
        url = reverse("admin:models_registry_modelversion_change", args=[version.pk])
        return HttpResponseRedirect(url)
