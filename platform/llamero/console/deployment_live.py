"""The live part of a deployment's page: its state, its replicas, and how it failed last."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from inference.protocol.replicas import ReplicaState, ReplicaStatus
from llamero.console.access import may_see, staff_only
from llamero.console.live import read_live
from llamero.console.overview import STATE_VARIANTS, UNKNOWN, show_seconds, show_share
from models_registry.models import Deployment, DeploymentState

_VARIANTS = {
    ReplicaState.READY: "success",
    ReplicaState.STARTING: "info",
    ReplicaState.LOADING: "info",
    ReplicaState.STALLED: "danger",
    ReplicaState.FAILED: "danger",
}


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """One replica, ready to be read."""

    status: ReplicaStatus
    current_generation: int

    @property
    def variant(self) -> str:
        """The colour of its state."""
        return _VARIANTS.get(self.status.state, "warning")

    @property
    def is_outdated(self) -> bool:
        """Whether it is about to be replaced."""
        return self.status.generation != self.current_generation

    @property
    def percent(self) -> int:
        """How much of its model is loaded or fetched."""
        return round(100 * self.status.progress)

    @property
    def num_busy(self) -> int:
        """How many of its slots have a job."""
        return self.status.stats.num_running

    @property
    def speed(self) -> str:
        """Tokens per second of decoding since it was loaded."""
        stats = self.status.stats
        if not stats.decode_seconds:
            return UNKNOWN
        return f"{stats.num_decoded_tokens / stats.decode_seconds:.1f}"

    @property
    def guesses(self) -> str:
        """How much of what was guessed ahead was right; empty where nothing was."""
        stats = self.status.stats
        if not stats.num_drafted_tokens:
            return ""
        return show_share(stats.num_accepted_tokens, stats.num_drafted_tokens)

    @property
    def ttft(self) -> str:
        """How long most first tokens of late took."""
        return show_seconds(self.status.ttft_seconds or None)

    @property
    def kv(self) -> str:
        """How full its cache is."""
        stats = self.status.stats
        return show_share(stats.kv_cells_used, stats.kv_cells_total)


@require_safe
@never_cache
@staff_only
@may_see("models_registry.view_deployment")
def show_deployment(request: HttpRequest, pk: int) -> HttpResponse:
    """Give the part that the page fetches again and again."""
    deployment = get_object_or_404(Deployment, pk=pk)
    live = read_live()
    replicas = live.replicas_of(deployment.slug) if live else []
    is_draining = deployment.enabled and deployment.is_draining
    state = DeploymentState(deployment.state)
    context: dict[str, Any] = {
        "deployment": deployment,
        "state_label": "Draining" if is_draining else state.label,
        "state_variant": "warning" if is_draining else STATE_VARIANTS.get(state, ""),
        "is_live": live is not None,
        "num_waiting": live.waiting.get(deployment.slug, 0) if live else 0,
        "rows": [ReplicaRow(one, deployment.generation) for one in replicas],
    }
    return render(request, "console/deployment_live.html", context)
