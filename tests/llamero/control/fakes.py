"""Targets, nodes and heartbeats for tests of the control plane."""

from typing import Any

from inference.protocol.nodes import Device, NodeStatus
from inference.protocol.replicas import (
    EngineStats,
    ModelKind,
    ReplicaSpec,
    ReplicaState,
    ReplicaStatus,
    RuntimeProfile,
)
from llamero.control.world import World, spec_of
from models_registry.selectors import DeploymentTarget
from tests.models_registry.factories import make_facts

GIB = 1 << 30
# Contexts of 1 GiB, beside a process of about 0.1.
LARGE_FACTS = make_facts(width=1 << 15)
LARGE_PROFILE = RuntimeProfile(context_length=4096, num_slots=2, prefix_host_bytes=0)


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


def make_large(name: str = "chat", **changes: Any) -> DeploymentTarget:
    """Give a deployment whose replica takes a good gigabyte."""
    return make_target(deployment=name, facts=LARGE_FACTS, profile=LARGE_PROFILE, **changes)


def make_node(name: str, *, is_draining: bool = False) -> NodeStatus:
    """Give a node's heartbeat that tells nothing of its memory."""
    return NodeStatus(node=name, is_draining=is_draining)


def node_with(name: str, free: int, *gpus: int) -> NodeStatus:
    """Give a node with so much free memory, and GPUs with so much each."""
    cards = (
        Device(kind="gpu", name=f"CUDA{number}", total_bytes=free_bytes, free_bytes=free_bytes)
        for number, free_bytes in enumerate(gpus)
    )
    return NodeStatus(
        node=name, memory_total_bytes=16 * GIB, memory_free_bytes=free, devices=tuple(cards)
    )


def make_status(state: ReplicaState, **changes: Any) -> ReplicaStatus:
    """Give a heartbeat of the target's first replica."""
    facts: dict[str, Any] = {"replica": "chat.0", "deployment": "chat", "node": "n1"}
    return ReplicaStatus(state=state, **{**facts, **changes})


def make_ready(spec: ReplicaSpec, node: str, *, num_running: int = 0) -> ReplicaStatus:
    """Give the heartbeat of a replica that serves."""
    return make_status(
        ReplicaState.READY,
        replica=spec.replica,
        deployment=spec.deployment,
        node=node,
        generation=spec.generation,
        num_slots=spec.profile.num_slots,
        stats=EngineStats(num_running=num_running),
    )


def make_world(
    targets: list[DeploymentTarget], nodes: list[NodeStatus], now: float = 1000.0, **changes: Any
) -> World:
    """Give a world."""
    return World(now=now, targets=tuple(targets), nodes=tuple(nodes), **changes)


def first_spec(target: DeploymentTarget) -> ReplicaSpec:
    """Give the spec of a deployment's first replica."""
    return spec_of(target, f"{target.deployment}.0")
