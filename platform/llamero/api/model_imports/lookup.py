"""Find what a caller may see of what is on its way."""

from llamero.accounts.selectors import Caller
from llamero.api.model_imports.callers import is_operator, owner_of
from llamero.errors import LlameroError
from models_registry.incoming_ids import is_incoming_id
from models_registry.models import Model, ModelImport, Upload


def find_import(import_id: str, caller: Caller) -> ModelImport:
    """Find an import; unknown ones and those of others sound the same."""
    found = None
    if is_incoming_id(import_id):
        found = ModelImport.objects.select_related("version").filter(pk=import_id).first()
    if found is None or not _may_see(found, caller):
        raise _missing("import", import_id)
    return found


def find_upload(upload_id: str, caller: Caller) -> Upload:
    """Find an upload, likewise."""
    found = None
    if is_incoming_id(upload_id):
        found = Upload.objects.select_related("model_import").filter(pk=upload_id).first()
    if found is None or not _may_see(found.model_import, caller):
        raise _missing("upload", upload_id)
    return found


def check_model(slug: str, caller: Caller) -> None:
    """Refuse a key for certain models that would bring another one."""
    if not caller.allowed_models:
        return
    model = Model.objects.filter(slug=slug).first()
    if model is None or not caller.may_use(model.pk):
        message = f"This key is for certain models only, and {slug!r:.80} is none of them."
        raise LlameroError(403, "model_not_allowed", message, param="model")


def _may_see(model_import: ModelImport, caller: Caller) -> bool:
    return is_operator(caller) or model_import.owner == owner_of(caller)


def _missing(what: str, name: str) -> LlameroError:
    message = f"There is no {what} {name!r:.80}, or no more: it ends a day after its last byte."
    return LlameroError(404, f"{what}_not_found", message, error_type="invalid_request_error")
