"""Judge values by the fields that take them, before anything is changed."""

import math
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from llamero.apply.mistakes import ApplyError, Mistakes
from llamero.apply.shapes import check_kind


def judge(
    row: models.Model, wanted: dict[str, Any], place: str, *, is_whole: bool = False
) -> dict[str, Any]:
    """Give values as their fields take them; raises ApplyError that names each wrong field.

    With ``is_whole`` the place is that of the one value itself.
    """
    found: dict[str, Any] = {}
    mistakes = Mistakes()
    for name, value in wanted.items():
        with mistakes.gathered():
            at = place if is_whole else f"{place}.{name}"
            found[name] = _judge_value(row, name, value, at)
    mistakes.tell()
    return found


def _judge_value(row: models.Model, name: str, value: Any, place: str) -> Any:
    field: Any = row._meta.get_field(name)
    if value is not None or not field.null:
        check_kind(value, _kind_of(field), place)
    if isinstance(value, float) and not math.isfinite(value):
        raise ApplyError(place, "must be a finite number")
    try:
        return field.clean(value, row)
    except ValidationError as error:
        words = " ".join(error.messages)
        if field.choices:
            words += (
                f" There are {', '.join(str(one) or 'an empty text' for one, _ in field.choices)}."
            )
        raise ApplyError(place, words) from error


def _kind_of(field: "models.Field[Any, Any]") -> type:
    if isinstance(field, models.BooleanField):
        return bool
    if isinstance(field, models.IntegerField):
        return int
    return float if isinstance(field, models.FloatField) else str


def set_values(row: models.Model, wanted: dict[str, Any]) -> None:
    """Put values into a row, unsaved."""
    for name, value in wanted.items():
        setattr(row, name, value)
