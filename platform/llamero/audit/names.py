"""What people call the things and fields of the log; it outlives both, and then shows its own."""

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model
from django.utils.text import capfirst


def name_kind(kind: str) -> str:
    """Give what things of a kind are called."""
    model = _find_model(kind)
    return kind if model is None else capfirst(str(model._meta.verbose_name))


def name_thing(kind: str, text: str) -> str:
    """Give what a thing is called: kind and text, unless that begins with a word of its kind."""
    words = name_kind(kind)
    says_kind = text.lower().split(" ")[0] in words.lower().split(" ")
    return text if says_kind else f"{words} {text}"


def name_field(kind: str, name: str) -> str:
    """Give what a field of such things is called."""
    model = _find_model(kind)
    try:
        field = model._meta.get_field(name) if model else None
    except FieldDoesNotExist:
        return name
    return str(getattr(field, "verbose_name", name))


def _find_model(kind: str) -> type[Model] | None:
    try:
        return apps.get_model(kind)
    except (LookupError, ValueError):
        return None
