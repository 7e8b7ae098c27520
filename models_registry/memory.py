"""What memory does a deployment's replica take, as far as the headers of its files tell? Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from inference.gguf.memory import Load, MemoryEstimate, estimate_memory
from inference.gguf.shape import MemoryShape
from inference.protocol.nodes import Device
from inference.protocol.replicas import ModelKind, RuntimeProfile

Facts = dict[str, Any]


def estimate_replica(
    *,
    kind: ModelKind,
    profile: RuntimeProfile,
    facts: Facts,
    draft_facts: Facts | None = None,
    adapter_bytes: int = 0,
    gpus: Sequence[Device] = (),
) -> MemoryEstimate | None:
    """Estimate one replica on a node with these GPUs; None where the header was never read."""
    shape, draft_shape = read_shape(facts), read_shape(draft_facts or {})
    if shape is None:
        return None
    load = Load(
        shape=shape,
        context_length=_usable_context(profile, facts),
        is_generative=kind.is_generative,
        adapter_bytes=adapter_bytes,
        draft=draft_shape
        and Load(shape=draft_shape, context_length=_usable_context(profile, draft_facts or {})),
    )
    return estimate_memory(load, profile, gpus)


def _usable_context(profile: RuntimeProfile, facts: Facts) -> int:
    """Give the tokens per slot: no more than the model was trained for, as the engine does."""
    return min(profile.context_length, facts.get("context_length") or profile.context_length)


def read_shape(facts: Facts) -> MemoryShape | None:
    """Give the sizes of a model; None where an older import did not keep them."""
    if not facts.get("memory", {}).get("layers"):
        return None
    try:
        return msgspec.convert(facts["memory"], MemoryShape)
    except msgspec.ValidationError:
        return None
