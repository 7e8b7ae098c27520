"""Which deployments are wanted: the registry cannot tell replicas, but knows who can."""

from collections.abc import Iterable

from django.conf import settings
from django.utils.module_loading import import_string


def note_demand(deployments: Iterable[str], *, is_wanted: bool) -> bool:
    """Have deployments without a minimum loaded, or sent to sleep; False: nobody heard it."""
    tell = import_string(settings.DEPLOYMENT_DEMAND)
    return bool(tell(deployments, is_wanted=is_wanted))
