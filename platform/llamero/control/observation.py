"""What state a deployment is in, judged from its replicas' heartbeats. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.protocol.replicas import ReplicaState, ReplicaStatus
from models_registry.models import DeploymentState
from models_registry.selectors import DeploymentTarget

IN_START = (ReplicaState.STARTING, ReplicaState.LOADING)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A deployment's state, and why, if that is no good one."""

    state: DeploymentState
    reason: str = ""


def observe(
    target: DeploymentTarget, statuses: Sequence[ReplicaStatus], *, obstacle: str = ""
) -> Verdict:
    """Judge a deployment; ``obstacle`` tells why it could not be placed.

    A ready replica of an older generation still counts as ready.
    """
    if not target.enabled:
        return Verdict(DeploymentState.STOPPED)
    if any(status.state is ReplicaState.READY for status in statuses):
        return Verdict(DeploymentState.READY)
    if not target.files:
        return Verdict(DeploymentState.PENDING, "The model has no ready version.")
    if target.min_replicas == 0:
        return Verdict(DeploymentState.STOPPED, "It runs no replicas.")
    current = [status for status in statuses if status.generation == target.generation]
    stalled = [status for status in current if status.state is ReplicaState.STALLED]
    if stalled:
        return Verdict(DeploymentState.FAILED, stalled[0].reason)
    failed = [status for status in current if status.state is ReplicaState.FAILED]
    if failed:
        return Verdict(DeploymentState.FAILED, failed[0].reason or "The replica ended.")
    if any(status.state in IN_START for status in current):
        return Verdict(DeploymentState.LOADING)
    return Verdict(DeploymentState.PENDING, obstacle)
