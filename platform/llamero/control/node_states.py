"""Read and write what admins say of nodes."""

from collections.abc import Iterable

from django.db.models import QuerySet

from llamero.audit.recording import recorded
from llamero.control.models import Node, Scheduling


def read_scheduling() -> dict[str, Scheduling]:
    """Give what each known node may run."""
    rows = Node.objects.values_list("name", "scheduling")
    return {name: Scheduling(scheduling) for name, scheduling in rows}


def note_nodes(names: Iterable[str]) -> None:
    """Keep nodes that report for the first time; they are open."""
    Node.objects.bulk_create([Node(name=name) for name in names], ignore_conflicts=True)


def schedule_nodes(*, nodes: QuerySet[Node], scheduling: Scheduling) -> int:
    """Open, cordon or drain nodes; gives the number of those that it changes."""
    others = nodes.exclude(scheduling=scheduling)
    with recorded(others):
        return others.update(scheduling=scheduling)
