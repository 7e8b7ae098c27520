"""The last changes that people made, for the home page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llamero.audit.models import Change
from llamero.audit.names import name_thing

MAX_SHOWN = 8


@dataclass(frozen=True, slots=True)
class RecentChange:
    """A change, and what people call the thing that changed: its kind and name."""

    change: Change
    thing: str


def list_recent_changes(user: Any) -> Sequence[RecentChange]:
    """List the latest that were somebody's, the newest first; none for who may not read the log."""
    if not user.has_perm("audit.view_change"):
        return ()
    latest = Change.objects.exclude(actor_name="").order_by("-pk")[:MAX_SHOWN]
    return [RecentChange(one, name_thing(one.kind, one.object_text)) for one in latest]
