"""Whatever saves or deletes a watched thing, wherever: the log is told."""

from typing import Any

from django.apps import apps
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_save, pre_delete, pre_save

from llamero.audit.models import Action
from llamero.audit.recording import Values, read_stored_values, read_values, record, write
from llamero.audit.watched import WATCHED

_BEFORE = "_audit_before"


def connect() -> None:
    """Listen, once a process."""
    for label in WATCHED:
        model = apps.get_model(label)
        pre_save.connect(_before_save, sender=model, dispatch_uid=f"audit {label}")
        post_save.connect(_after_save, sender=model, dispatch_uid=f"audit {label}")
        pre_delete.connect(_before_delete, sender=model, dispatch_uid=f"audit {label}")
        for field in model._meta.many_to_many:
            through = getattr(model, field.name).through
            if through._meta.auto_created:
                listener = _Relation(field.name)
                uid = f"audit {label} {field.name}"
                m2m_changed.connect(listener, sender=through, dispatch_uid=uid, weak=False)


def _before_save(instance: Model, raw: bool = False, **_: Any) -> None:
    is_known = not raw and not instance._state.adding and instance.pk is not None
    setattr(instance, _BEFORE, read_stored_values(instance) if is_known else None)


def _after_save(instance: Model, raw: bool = False, **_: Any) -> None:
    before: Values | None = instance.__dict__.pop(_BEFORE, None)
    if raw:
        return
    if before is None:
        record(instance, Action.CREATED, {}, read_values(instance))
    else:
        after = read_stored_values(instance) or {}
        record(instance, Action.CHANGED, before, after)


def _before_delete(instance: Model, **_: Any) -> None:
    record(instance, Action.DELETED, read_stored_values(instance) or {}, {})


class _Relation:
    """Notes what a thing is related to by a field of many, before and after."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, instance: Model, action: str, *, reverse: bool, **_: Any) -> None:
        """Hear of one step; the other end's point of view is left out."""
        if reverse:
            return
        if action.startswith("pre_"):
            setattr(instance, _BEFORE + self._name, self._read(instance))
            return
        before = instance.__dict__.pop(_BEFORE + self._name, [])
        after = self._read(instance)
        if before != after:
            write(instance, Action.CHANGED, {self._name: before}, {self._name: after})

    def _read(self, instance: Model) -> list[str]:
        return sorted(str(other) for other in getattr(instance, self._name).all())
