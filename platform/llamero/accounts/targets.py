"""Whose a limit or an alert is: one key's, user's, team's or model's, or that of all together."""

from django.db import models
from django.db.models import Q

# The foreign keys of such a row; at most one of them is set.
TARGETS = ("key", "user", "team", "model")


def of_all() -> Q:
    """Find rows without a target."""
    return Q(*((f"{one}__isnull", True) for one in TARGETS))


def of_one_or_all() -> Q:
    """Find rows with one target or none."""
    each = (Q(*((f"{other}__isnull", other != one) for other in TARGETS)) for one in TARGETS)
    return of_all() | Q(*each, _connector=Q.OR)


def name_target(row: models.Model) -> str:
    """Name the target of a row as counters do (``key:7``); empty where it is of all."""
    for name in TARGETS:
        if (number := getattr(row, f"{name}_id")) is not None:
            return f"{name}:{number}"
    return ""


def show_target(row: models.Model) -> str:
    """Name the target of a row for people; empty where it is of all."""
    for name in TARGETS:
        if (target := getattr(row, name)) is not None:
            return f"{name} {target}"
    return ""
