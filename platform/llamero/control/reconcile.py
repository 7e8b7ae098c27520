"""Carry out what the database wants, and write back how it goes."""

import logging
from collections import defaultdict

from django.utils import timezone

from inference.protocol.replicas import ReplicaStatus
from inference.relay.connect import SyncRedis
from inference.relay.desired import DesiredState
from inference.relay.registry import ReplicaRegistry
from llamero.control.observation import Verdict, observe
from llamero.control.placement import place
from models_registry.models import Deployment
from models_registry.selectors import DeploymentTarget, list_deployment_targets

logger = logging.getLogger(__name__)


def reconcile(redis: SyncRedis) -> None:
    """Tell each node what to run, and record each deployment's state where it changed."""
    targets = list_deployment_targets()
    desired = DesiredState(redis)
    nodes = desired.nodes()
    placed = {node.node: desired.read(node.node) or () for node in nodes}
    reports = ReplicaRegistry(redis).list()
    placement = place(targets, nodes, placed, reports)
    for node, specs in placement.specs.items():
        if desired.publish(node, specs):
            logger.info(
                "node %s should run %s", node, ", ".join(s.replica for s in specs) or "nothing"
            )
    statuses = _by_deployment(reports)
    for target in targets:
        obstacle = placement.obstacles.get(target.deployment, "")
        if not nodes:
            obstacle = "No node is running."
        record(target, observe(target, statuses[target.deployment], obstacle=obstacle))


def record(target: DeploymentTarget, verdict: Verdict) -> None:
    """Write a state that differs from the one read; a deployment that changed meanwhile waits."""
    if (target.state, target.reason) == (verdict.state.value, verdict.reason):
        return
    num_changed = Deployment.objects.filter(slug=target.deployment, state=target.state).update(
        state=verdict.state, reason=verdict.reason, state_changed_at=timezone.now()
    )
    if num_changed:
        logger.info(
            "deployment %s: %s -> %s %s",
            target.deployment,
            target.state,
            verdict.state.value,
            verdict.reason,
        )


def _by_deployment(statuses: tuple[ReplicaStatus, ...]) -> dict[str, list[ReplicaStatus]]:
    found: dict[str, list[ReplicaStatus]] = defaultdict(list)
    for status in statuses:
        found[status.deployment].append(status)
    return found
