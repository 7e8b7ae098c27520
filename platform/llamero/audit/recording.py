"""Compare things before and after, and write down what differs."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from django.db import transaction
from django.db.models import Field, ForeignKey, Model, QuerySet

from llamero.audit.actors import current_actor
from llamero.audit.models import Action, Change
from llamero.audit.watched import WATCHED, Watch

Values = dict[str, Any]
HIDDEN = "(hidden)"
_LONGEST_TEXT = 2000


def read_values(thing: Model) -> Values:
    """Give a thing's fields as the database holds them; secrets, too: for comparing alone."""
    return {field.attname: getattr(thing, field.attname) for field in thing._meta.concrete_fields}


def read_stored_values(thing: Model) -> Values | None:
    """Give what the database holds of a thing at this moment."""
    return type(thing)._base_manager.filter(pk=thing.pk).values(*_names(thing)).first()


def record(thing: Model, action: Action, before: Values, after: Values) -> None:
    """Note what differs; nothing if that is only what the program itself keeps."""
    watch = WATCHED[thing._meta.label]
    fields = [
        field
        for field in thing._meta.concrete_fields
        if not field.primary_key
        and not watch.is_silent(field.name)
        and before.get(field.attname) != after.get(field.attname)
        and not (action is Action.CREATED and _is_default(field, after[field.attname]))
    ]
    if not fields and action is Action.CHANGED:
        return
    # A new thing's fields that are empty, or as they are for all, tell nothing.
    told_before = _tell(watch, fields, before)
    told_after = _tell(watch, fields, after)
    write(thing, action, told_before, told_after)


def write(thing: Model, action: Action, before: Values, after: Values) -> None:
    """Write to the log."""
    actor = current_actor()
    Change.objects.create(
        actor_id=actor.user_id,
        actor_name=actor.name[:200],
        source=actor.source,
        address=actor.address[:64],
        action=action,
        kind=thing._meta.label_lower,
        object_id=str(thing.pk)[:64],
        object_text=str(thing)[:200],
        before=before,
        after=after,
    )


@contextmanager
def recorded(things: QuerySet[Any]) -> Iterator[None]:
    """Note what a block changes by ``update``, of which nobody is told otherwise."""
    with transaction.atomic():
        before = {thing.pk: read_values(thing) for thing in things}
        yield
        for thing in things.model._base_manager.filter(pk__in=before):
            record(thing, Action.CHANGED, before[thing.pk], read_values(thing))


def _names(thing: Model) -> list[str]:
    return [field.attname for field in thing._meta.concrete_fields]


def _is_default(field: "Field[Any, Any]", value: Any) -> bool:
    return field.has_default() and bool(value == field.get_default())


def _tell(watch: Watch, fields: list["Field[Any, Any]"], values: Values) -> Values:
    told = {}
    for field in fields:
        value = values.get(field.attname)
        if value in (None, "", [], {}):
            continue
        told[field.name] = HIDDEN if watch.is_secret(field.name) else _tell_value(field, value)
    return told


def _tell_value(field: "Field[Any, Any]", value: Any) -> Any:
    if isinstance(field, ForeignKey):
        other = field.related_model._base_manager.filter(pk=value).first()
        return f"{other} ({value})" if other is not None else str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bool | int | float | list | dict):
        return value
    text = str(value)
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"
