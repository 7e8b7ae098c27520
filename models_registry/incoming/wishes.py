"""What an import is to become, and whether that can be."""

from collections.abc import Mapping
from typing import Any

import msgspec
from django.core.exceptions import ValidationError

from inference.protocol.replicas import ModelKind
from models_registry.models import Model, ModelImport
from models_registry.names import normalize_name


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the files of an import are to become: a new model, or a version of an old one.

    Without ``kind`` it follows from the header. Adapters that come along go to the deployments of
    the model.
    """

    model: str
    title: str = ""
    kind: str = ""
    is_new_version: bool = False
    is_deployed: bool = False


def read_wish(model_import: ModelImport) -> Wish | None:
    """Give what an import is to become, if that was said."""
    return msgspec.convert(model_import.wish, Wish) if model_import.wish else None


def check_wish(fields: Mapping[str, Any]) -> Wish:
    """Validate the fields of a wish; raises ValidationError that names the wrong one."""
    wish = Wish(**{**fields, "model": normalize_name(str(fields.get("model", "")))})
    if wish.kind and wish.kind not in {kind.value for kind in ModelKind}:
        kinds = ", ".join(kind.value for kind in ModelKind)
        raise ValidationError({"kind": f"There is no kind {wish.kind!r}; there are {kinds}."})
    is_known = Model.objects.filter(slug=wish.model).exists()
    if wish.is_new_version:
        if not is_known:
            raise ValidationError({"model": f"There is no model {wish.model}."})
        return wish
    if is_known:
        raise ValidationError(
            {"model": f"A model {wish.model} exists: choose another id, or add a version to it."}
        )
    try:
        Model(slug=wish.model, title=wish.title or wish.model).full_clean()
    except ValidationError as error:
        raise ValidationError(_renamed(error)) from error
    return wish


def _renamed(error: ValidationError) -> dict[str, Any]:
    """Name the fields as a wish does."""
    return {
        "model" if name == "slug" else name: errors for name, errors in error.error_dict.items()
    }
