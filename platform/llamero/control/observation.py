"""What state a deployment is in, judged from its replicas' heartbeats. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.protocol.replicas import Outlook, Prospect, ReplicaState, ReplicaStatus
from llamero.control.placement import Obstacle
from llamero.control.rollout import Turn
from models_registry.models import DeploymentState
from models_registry.selectors import DeploymentTarget

DRAINS = "Takes no new requests, and stops when it has answered those it has."
# The first failure may have been an accident.
MAX_EXCUSED_FAILURES = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """A deployment's state, and why, if that is no good one or a change is under way."""

    state: DeploymentState
    reason: str = ""


def observe(
    target: DeploymentTarget,
    statuses: Sequence[ReplicaStatus],
    *,
    num_wanted: int = 1,
    is_placed: bool = False,
    obstacle: Obstacle | None = None,
    turn: Turn | None = None,
) -> Verdict:
    """Judge a deployment; ``obstacle`` tells why it could not be placed.

    One that was placed loads, also before its process is heard of. A ready replica of an older
    generation still counts as ready; how far the change has come is then told by ``turn``.
    """
    if not target.enabled:
        return Verdict(DeploymentState.STOPPED)
    current = [status for status in statuses if status.generation == target.generation]
    if any(status.state is ReplicaState.READY for status in statuses):
        if target.is_draining:
            return Verdict(DeploymentState.READY, DRAINS)
        if turn is None:
            return Verdict(DeploymentState.READY)
        hindrance = _find_failure(current) or (obstacle.reason if obstacle else "")
        words = turn.describe(num_wanted, target.generation, hindrance)
        return Verdict(DeploymentState.READY, words)
    if not target.files:
        return Verdict(DeploymentState.PENDING, "The model has no ready version.")
    if num_wanted == 0:
        return Verdict(DeploymentState.SLEEPING, "The next request loads it.")
    if reason := _find_failure(current):
        return Verdict(DeploymentState.FAILED, reason)
    if is_placed or any(status.state.is_coming for status in current):
        return Verdict(DeploymentState.LOADING)
    if obstacle is not None and obstacle.will_pass:
        return Verdict(DeploymentState.LOADING, obstacle.reason)
    return Verdict(DeploymentState.PENDING, obstacle.reason if obstacle else "")


def _find_failure(statuses: Sequence[ReplicaStatus]) -> str:
    """Say why replicas do not come, where none of them may be expected to."""
    for status in statuses:
        if status.state is ReplicaState.STALLED:
            return status.reason
    for status in statuses:
        if status.state is ReplicaState.FAILED:
            return status.reason or "The replica ended."
    if statuses and all(status.num_failures > MAX_EXCUSED_FAILURES for status in statuses):
        reasons = (status.reason for status in statuses if status.reason)
        return next(reasons, "The replica keeps ending; it is started again.")
    return ""


_PROSPECTS = {
    DeploymentState.READY: Prospect.COMING,
    DeploymentState.LOADING: Prospect.COMING,
    DeploymentState.SLEEPING: Prospect.COMING,
    DeploymentState.PENDING: Prospect.BLOCKED,
    DeploymentState.FAILED: Prospect.HOPELESS,
    DeploymentState.STOPPED: Prospect.OFF,
}


def describe_outlook(target: DeploymentTarget, verdict: Verdict) -> Outlook:
    """Tell gateways whether waiting for a replica makes sense."""
    prospect = _PROSPECTS[verdict.state]
    return Outlook(
        prospect=prospect,
        reason=verdict.reason or ("It is switched off." if prospect is Prospect.OFF else ""),
        patience_seconds=target.profile.job_timeout_seconds,
    )
