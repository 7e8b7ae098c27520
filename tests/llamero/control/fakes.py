"""Targets, nodes and heartbeats for tests of the control plane."""

from typing import Any

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ModelKind, ReplicaState, ReplicaStatus, RuntimeProfile
from models_registry.selectors import DeploymentTarget


def make_target(**changes: Any) -> DeploymentTarget:
    """Give an enabled deployment with one file."""
    facts: dict[str, Any] = {
        "deployment": "chat",
        "model": "chat",
        "kind": ModelKind.CHAT,
        "enabled": True,
        "generation": 1,
        "min_replicas": 1,
        "max_replicas": 1,
        "profile": RuntimeProfile(),
        "files": ("/models/a.gguf",),
        "sha256": ("a" * 64,),
        "version_pk": 1,
        "state": "pending",
        "reason": "",
        "facts": {},
    }
    return DeploymentTarget(**{**facts, **changes})


def make_node(name: str, *, is_draining: bool = False) -> NodeStatus:
    """Give a node's heartbeat."""
    return NodeStatus(node=name, is_draining=is_draining)


def make_status(state: ReplicaState, **changes: Any) -> ReplicaStatus:
    """Give a heartbeat of the target's first replica."""
    facts: dict[str, Any] = {"replica": "chat.0", "deployment": "chat", "node": "n1"}
    return ReplicaStatus(state=state, **{**facts, **changes})
