"""The page on which files are uploaded, and on which imports of any kind are watched."""

from typing import Any

from django.conf import settings
from django.views.generic import TemplateView

from models_registry.admin.bringing_page import BringingPage
from models_registry.admin.wish_form import WishForm
from models_registry.incoming.room import free_bytes, outstanding_bytes
from models_registry.incoming_ids import is_incoming_id
from models_registry.models import ImportState, Model, ModelImport
from models_registry.sizes import filesizeformat

MAX_LISTED = 20


class UploadPage(BringingPage, TemplateView):
    """Files are sent by the page's own code, over the same API that programs use."""

    way = "upload"
    template_name = "models_registry/upload.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add what the template shows: this import, or those that are not finished."""
        context: dict[str, Any] = super().get_context_data(**kwargs)
        import_id = self.request.GET.get("import", "")
        found = ModelImport.objects.filter(pk=import_id) if is_incoming_id(import_id) else ()
        shown = next(iter(found), None)
        return {
            **context,
            "form": WishForm(initial=_initial(shown), user=self.request.user),
            "shown": shown,
            "is_gone": bool(import_id) and shown is None,
            "unfinished": [] if shown else _list_unfinished(),
            "room": filesizeformat(max(0, free_bytes() - outstanding_bytes())),
            "hours": settings.UPLOAD_HOURS,
        }


def _initial(shown: ModelImport | None) -> dict[str, Any]:
    """Fill the form as it was left."""
    wish = shown.wish if shown else {}
    if not wish:
        return {}
    if wish.get("is_new_version"):
        model = Model.objects.filter(slug=wish["model"]).first()
        return {"model": model, "deploy": wish.get("is_deployed", True)}
    return {
        "slug": wish["model"],
        "title": wish.get("title", ""),
        "kind": wish.get("kind", ""),
        "deploy": wish.get("is_deployed", True),
    }


def _list_unfinished() -> list[dict[str, Any]]:
    imports = ModelImport.objects.exclude(state=ImportState.DONE).prefetch_related("uploads")
    return [
        _summarize(one) for one in imports.filter(uploads__isnull=False).distinct()[:MAX_LISTED]
    ]


def _summarize(model_import: ModelImport) -> dict[str, Any]:
    uploads = list(model_import.uploads.all())
    size = sum(upload.size_bytes or 0 for upload in uploads)
    received = sum(upload.num_received for upload in uploads)
    return {
        "id": model_import.id,
        "names": ", ".join(map(str, uploads[:3])) + (" …" if len(uploads) > 3 else ""),
        "state": model_import.get_state_display(),
        "received": received,
        "size": size,
        "touched_at": model_import.touched_at,
    }
