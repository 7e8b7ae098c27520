"""What can be done with a deployment as it runs: load, unload, restart, drain."""

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from models_registry.admin.confirmed import Step
from models_registry.demand import note_demand
from models_registry.models import Deployment, DeploymentState
from models_registry.services.deployments import (
    drain_deployments,
    enable_deployments,
    restart_deployments,
)

UNHEARD = "The Redis-protocol server cannot be reached: try again in a moment."


def list_deployment_steps(deployment: Deployment) -> list[Step]:
    """Give the steps that make sense in its state."""
    if not deployment.enabled:
        return [LOAD]
    if deployment.is_draining:
        return [LOAD, UNLOAD]
    if deployment.state == DeploymentState.SLEEPING:
        return [LOAD, DRAIN]
    return [RESTART, DRAIN, UNLOAD]


def _rows(deployment: Deployment) -> QuerySet[Deployment]:
    return Deployment.objects.filter(pk=deployment.pk)


def _sleeps(deployment: Deployment) -> bool:
    """Whether it may be without a replica and still answer."""
    return deployment.min_replicas == 0


def _foretell_load(deployment: Deployment) -> list[str]:
    count = max(1, deployment.min_replicas)
    lines = [f"{count} replica{'s' if count > 1 else ''} will be started where there is room."]
    if deployment.is_draining:
        lines.append("It takes requests again.")
    if _sleeps(deployment):
        lines.append(f"It sleeps again after {deployment.idle_timeout_seconds} s without requests.")
    return lines


def _load(deployment: Deployment) -> str:
    enable_deployments(deployments=_rows(deployment), is_enabled=True)
    if _sleeps(deployment) and not note_demand([deployment.slug], is_wanted=True):
        raise ValidationError(UNHEARD)
    return f"{deployment} is being loaded."


def _foretell_unload(deployment: Deployment) -> list[str]:
    if _sleeps(deployment) and not deployment.is_draining:
        return [
            "Its memory is freed as soon as it has nothing to do.",
            "The next request loads it again.",
        ]
    return [
        *_foretell_stop(),
        "Drain it instead to let all of them end.",
        *_foretell_stand_in(deployment),
    ]


def _foretell_stop(whose: str = "Its") -> list[str]:
    """Say what becomes of requests where replicas are stopped."""
    return [
        f"{whose} replicas are stopped, and their memory is freed.",
        "Requests that run have some seconds to end (LLAMERO_DRAIN_SECONDS of their node).",
        "What is left of them then, and what waits, ends with an error.",
    ]


def _unload(deployment: Deployment) -> str:
    if _sleeps(deployment) and not deployment.is_draining:
        if not note_demand([deployment.slug], is_wanted=False):
            raise ValidationError(UNHEARD)
        return f"{deployment} sleeps as soon as it has nothing to do."
    enable_deployments(deployments=_rows(deployment), is_enabled=False)
    return f"{deployment} is being stopped."


def _foretell_restart(deployment: Deployment) -> list[str]:
    return [
        "Each replica is replaced by a fresh one.",
        "The old one serves until the new one is ready, unless the memory is too small for both.",
    ]


def _restart(deployment: Deployment) -> str:
    restart_deployments(deployments=_rows(deployment))
    return f"{deployment} will restart."


def _foretell_drain(deployment: Deployment) -> list[str]:
    return [
        "It takes no new requests from now on.",
        "It stops when it has answered those that run or wait.",
        *_foretell_stand_in(deployment),
    ]


def _drain(deployment: Deployment) -> str:
    drain_deployments(deployments=_rows(deployment))
    return f"{deployment} takes no new requests, and stops when it has answered those it has."


def _foretell_stand_in(deployment: Deployment) -> list[str]:
    """Say who answers meanwhile."""
    others = Deployment.objects.filter(
        model=deployment.model_id, enabled=True, is_draining=False
    ).exclude(pk=deployment.pk)
    if names := ", ".join(others.values_list("slug", flat=True)):
        return [f"Requests for the model {deployment.model} go to {names} meanwhile."]
    if fallback := deployment.model.fallback:
        return [f"{fallback} answers for {deployment.model} meanwhile."]
    return [f"Nothing else serves {deployment.model}: requests will be refused."]


def foretell_deletion(deployment: Deployment) -> list[str]:
    """Say what clients get afterwards."""
    lines = []
    if deployment.enabled:
        lines = [*_foretell_stop(), "Drain it first to let all of them end."]
    # Without any deployment a model is not published, and nobody answers in its place.
    others = Deployment.objects.filter(model=deployment.model_id).exclude(pk=deployment.pk)
    model = deployment.model
    if not others.exists():
        return [*lines, f"Nothing else serves {model}: requests for it get 404 (model_not_found)."]
    return [*lines, *_foretell_stand_in(deployment)]


def foretell_deletions() -> list[str]:
    """Say what clients get after several deployments were deleted."""
    return [
        *_foretell_stop("Their"),
        "Drain them first to let all of them end.",
        "Requests for a model without another deployment get 404 (model_not_found).",
    ]


LOAD = Step("load", "Load", "play_arrow", _foretell_load, _load)
UNLOAD = Step("unload", "Unload", "stop", _foretell_unload, _unload, is_dangerous=True)
RESTART = Step("restart", "Restart", "restart_alt", _foretell_restart, _restart)
DRAIN = Step("drain", "Drain", "water_drop", _foretell_drain, _drain)
