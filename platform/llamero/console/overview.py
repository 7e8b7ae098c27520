"""What the admin's home page shows: deployments, nodes and sums, each number ready to be read.

Numbers that change are kept by name in ``cells``, so that a page can renew one without the rest.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Case, When
from django.template.defaultfilters import pluralize
from django.urls import NoReverseMatch, reverse

from inference.protocol.nodes import NodeStatus
from llamero.console.live import Live, Load, read_live
from llamero.console.rates import Rates, Speedometer
from llamero.control.models import Scheduling
from llamero.control.node_states import read_scheduling
from models_registry.models import Deployment, DeploymentState
from models_registry.sizes import filesizeformat

UNKNOWN = "\N{EN DASH}"
STATE_VARIANTS = {
    DeploymentState.READY: "success",
    DeploymentState.LOADING: "info",
    DeploymentState.PENDING: "warning",
    DeploymentState.SLEEPING: "info",
    DeploymentState.FAILED: "danger",
}
MAX_ROWS = 40
_ORDER = (
    DeploymentState.FAILED,
    DeploymentState.PENDING,
    DeploymentState.LOADING,
    DeploymentState.READY,
    DeploymentState.SLEEPING,
    DeploymentState.STOPPED,
)
Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    """One line of the table of deployments."""

    name: str
    url: str
    model: str
    kind: str
    state: str
    state_label: str
    state_variant: str
    reason: str
    cells: Cells

    @property
    def is_loading(self) -> bool:
        """Whether there is progress to show."""
        return self.state == DeploymentState.LOADING


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One card of a node; each device has a name and its memory.

    ``deployments`` have a replica there; ``limit`` says what keeps new ones away: empty if nothing.
    """

    name: str
    url: str
    cells: Cells
    devices: tuple[tuple[str, Cells], ...]
    deployments: tuple[str, ...] = ()
    limit: str = ""

    @property
    def is_draining(self) -> bool:
        """Whether an admin has it emptied."""
        return self.limit == Scheduling.DRAINING.label


@dataclass(frozen=True, slots=True)
class Overview:
    """All of it. ``is_live`` is False while nobody hears the replicas."""

    rows: Sequence[DeploymentRow] = ()
    nodes: Sequence[NodeRow] = ()
    total: Cells = field(default_factory=dict)
    is_live: bool = True
    num_more: int = 0

    @property
    def shape(self) -> str:
        """What must be drawn anew when it changes: everything but the numbers."""
        parts = [repr(self.is_live), *(f"{row.name} {row.state} {row.reason}" for row in self.rows)]
        parts += [f"{node.name} {len(node.devices)} {node.limit}" for node in self.nodes]
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()

    @property
    def values(self) -> dict[str, str]:
        """Every number by its name on the page."""
        found = {f"total.{key}": text for key, text in self.total.items()}
        for row in self.rows:
            found |= {f"row.{row.name}.{key}": text for key, text in row.cells.items()}
        for node in self.nodes:
            found |= {f"node.{node.name}.{key}": text for key, text in node.cells.items()}
            for number, (_, cells) in enumerate(node.devices):
                prefix = f"node.{node.name}.{number}"
                found |= {f"{prefix}.{key}": text for key, text in cells.items()}
        return found


def read_overview(speedometer: Speedometer | None = None, now: float = 0.0) -> Overview:
    """Read all of it; works without the Redis-protocol server, and without rates."""
    live = read_live()
    seen = live or Live()
    meter = speedometer or Speedometer()
    if live is not None and speedometer is not None:
        meter.note(now, live.statuses)
    shown, num_more = _choose_deployments()
    return Overview(
        rows=[_deployment_row(one, seen, meter.rates(one.slug)) for one in shown],
        num_more=num_more,
        nodes=_node_rows(seen),
        total=_total_cells(seen.total, meter.rates()) if live else {},
        is_live=live is not None,
    )


def _choose_deployments() -> tuple[list[Deployment], int]:
    """Give as many as a page can show, the troubled first, and how many more there are."""
    order = (Case(*(When(state=state, then=place) for place, state in enumerate(_ORDER))), "slug")
    found = Deployment.objects.select_related("model").order_by(*order)
    shown = list(found[: MAX_ROWS + 1])
    if len(shown) <= MAX_ROWS:
        return shown, 0
    return shown[:MAX_ROWS], found.count() - MAX_ROWS


def _deployment_row(deployment: Deployment, live: Live, rates: Rates | None) -> DeploymentRow:
    state = DeploymentState(deployment.state)
    is_draining = deployment.enabled and deployment.is_draining
    return DeploymentRow(
        name=deployment.slug,
        url=_change_url("models_registry_deployment", deployment.pk),
        model=deployment.model.slug,
        kind=deployment.kind.value,
        state=state.value,
        state_label="Draining" if is_draining else str(state.label),
        state_variant="warning" if is_draining else STATE_VARIANTS.get(state, "default"),
        reason=deployment.reason,
        cells=_load_cells(live.load_of(deployment.slug), rates),
    )


def _load_cells(load: Load, rates: Rates | None) -> dict[str, str]:
    return {
        "replicas": intcomma(load.num_ready),
        "running": intcomma(load.num_running),
        "slots": intcomma(load.num_slots),
        "waiting": intcomma(load.num_waiting),
        "tokens_per_second": show_rate(rates.tokens if rates else None),
        "batch": f"{load.mean_batch:.2f}",
        "ttft": show_seconds(load.first_token_percentile(0.5)),
        "kv": show_share(load.kv_used, load.kv_total),
        "memory": filesizeformat(load.memory_bytes) if load.memory_bytes else UNKNOWN,
        "progress": f"{round(100 * load.progress)} %",
    }


def _total_cells(load: Load, rates: Rates | None) -> dict[str, str]:
    return _load_cells(load, rates) | {
        "jobs_per_second": show_rate(rates.jobs if rates else None),
        "prompt_tokens_per_second": show_rate(rates.prompt_tokens if rates else None),
        "ttft_p50": show_seconds(load.first_token_percentile(0.5)),
        "ttft_p95": show_seconds(load.first_token_percentile(0.95)),
    }


def _node_rows(live: Live) -> list[NodeRow]:
    scheduling = read_scheduling() if live.nodes else {}
    return [
        _node_row(node, live, scheduling.get(node.node, Scheduling.OPEN))
        for node in sorted(live.nodes, key=lambda one: one.node)
    ]


def _node_row(node: NodeStatus, live: Live, scheduling: Scheduling) -> NodeRow:
    replicas = [status for status in live.statuses if status.node == node.node]
    gpus = [device for device in node.devices if device.kind != "cpu"]
    return NodeRow(
        name=node.node,
        url=f"{_list_url('control_node')}?q={node.node}",
        cells=_memory_cells(node.memory_total_bytes, node.memory_free_bytes)
        | {
            "replicas": f"{len(replicas)} replica{pluralize(len(replicas))}",
            "cores": f"{node.num_cores} core{pluralize(node.num_cores)}",
        },
        devices=tuple(
            (gpu.description or gpu.name, _memory_cells(gpu.total_bytes, gpu.free_bytes))
            for gpu in gpus
        ),
        deployments=tuple(sorted({status.deployment for status in replicas})),
        limit="" if scheduling is Scheduling.OPEN else str(scheduling.label),
    )


def _memory_cells(total: int, free: int) -> dict[str, str]:
    used = max(0, total - free)
    return {
        "memory": f"{filesizeformat(used)} of {filesizeformat(total)}" if total else UNKNOWN,
        "used": str(round(100 * used / total)) if total else "0",
    }


def show_rate(number: float | None) -> str:
    """Show something per second: with a decimal where it is small."""
    if number is None:
        return UNKNOWN
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def show_seconds(seconds: float | None) -> str:
    """Show a time: in milliseconds where it is short."""
    if seconds is None:
        return UNKNOWN
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def show_share(part: int, whole: int) -> str:
    """Show a part of a whole in per cent."""
    return f"{round(100 * part / whole)} %" if whole else UNKNOWN


def _change_url(name: str, pk: int) -> str:
    try:
        return reverse(f"admin:{name}_change", args=[pk])
    except NoReverseMatch:
        return ""


def _list_url(name: str) -> str:
    try:
        return reverse(f"admin:{name}_changelist")
    except NoReverseMatch:
        return ""
