"""Have changes noted that no save tells of."""

from contextlib import AbstractContextManager
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils.module_loading import import_string


def noted(things: QuerySet[Any]) -> AbstractContextManager[None]:
    """Have whatever a block changes of things by ``update`` be noted, with who did it.

    The registry does not know of an audit log: ``settings.CHANGE_LOG`` names who keeps it.
    """
    keeper: AbstractContextManager[None] = import_string(settings.CHANGE_LOG)(things)
    return keeper
