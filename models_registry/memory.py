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
    load = _load_of(
        facts,
        profile,
        is_generative=kind.is_generative,
        adapter_bytes=adapter_bytes,
        draft=_load_of(draft_facts, profile) if draft_facts else None,
    )
    return estimate_memory(load, profile, gpus) if load else None


def _load_of(
    facts: Facts,
    profile: RuntimeProfile,
    *,
    is_generative: bool = True,
    adapter_bytes: int = 0,
    draft: Load | None = None,
) -> Load | None:
    shape = read_shape(facts)
    if shape is None:
        return None
    return Load(
        shape=shape,
        context_length=_usable_context(profile, facts),
        is_generative=is_generative,
        adapter_bytes=adapter_bytes,
        draft=draft,
    )


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
