"""The deployments as the dashboard shows them: what the database and the heartbeats say of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse

from llamero.console.live import Live, Load, read_live
from models_registry.models import Deployment, DeploymentState

STATE_VARIANTS = {
    DeploymentState.READY: "success",
    DeploymentState.LOADING: "info",
    DeploymentState.PENDING: "warning",
    DeploymentState.SLEEPING: "info",
    DeploymentState.FAILED: "danger",
}


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    """One line of the dashboard's table."""

    name: str
    url: str
    model: str
    kind: str
    state: str
    state_label: str
    state_variant: str
    reason: str
    load: Load

    @property
    def progress_percent(self) -> int:
        """How far a loading model is."""
        return round(self.load.progress * 100)


@dataclass(frozen=True, slots=True)
class Overview:
    """All deployments, and their sums. ``is_live`` is False while nobody hears the replicas."""

    rows: Sequence[DeploymentRow]
    is_live: bool

    @property
    def num_ready(self) -> int:
        """Count the deployments that answer."""
        return sum(row.state == DeploymentState.READY for row in self.rows)

    @property
    def num_running(self) -> int:
        """Count the sequences in all batches."""
        return sum(row.load.num_running for row in self.rows)

    @property
    def num_waiting(self) -> int:
        """Count the jobs that wait for a slot."""
        return sum(row.load.num_waiting for row in self.rows)

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of decoding, of all replicas together."""
        return sum(row.load.tokens_per_second for row in self.rows)

    @property
    def mean_batch(self) -> float:
        """The largest mean batch of any deployment."""
        return max((row.load.mean_batch for row in self.rows), default=0.0)


def read_overview() -> Overview:
    """Read all deployments and how each is doing; works without the Redis-protocol server."""
    live = read_live()
    rows = [
        _make_row(deployment, live or Live())
        for deployment in Deployment.objects.select_related("model").order_by("slug")
    ]
    return Overview(rows, is_live=live is not None)


def _make_row(deployment: Deployment, live: Live) -> DeploymentRow:
    state = DeploymentState(deployment.state)
    return DeploymentRow(
        name=deployment.slug,
        url=_change_url(deployment),
        model=deployment.model.slug,
        kind=deployment.kind.value,
        state=state.value,
        state_label=str(state.label),
        state_variant=STATE_VARIANTS.get(state, "default"),
        reason=deployment.reason,
        load=live.load_of(deployment.slug),
    )


def _change_url(deployment: Deployment) -> str:
    try:
        return reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    except NoReverseMatch:
        return ""
