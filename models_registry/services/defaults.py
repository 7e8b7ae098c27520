"""Which settings suit a model, given its header and the nodes that are there?"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from inference.gguf.memory import MemoryEstimate
from inference.protocol.nodes import Device
from inference.protocol.replicas import ModelKind, RuntimeProfile
from models_registry.memory import Facts, estimate_replica, read_shape
from models_registry.models import Model, ModelVersion
from models_registry.rooms import Room, list_rooms

DEFAULT_CONTEXT = 8192
DEFAULT_SLOTS = 16
# Fewer slots than this only where not even some layers on the CPU make room.
WANTED_SLOTS = 4
# While no node is known, contexts take at most this, and this part of this machine's memory.
UNKNOWN_CACHE_BYTES = 8 * 1024**3
UNKNOWN_SHARE = 4
# What CPUs have no fast code for when many tokens are computed at once; benchmarks/weights.py.
SLOW_TYPES = frozenset({"Q4_1", "Q5_1"})
# Larger models read their weights for longer than they compute, when one token is asked for.
MAX_CONVERTED_PARAMS = 2_000_000_000


def default_profile(model: Model, version: ModelVersion | None) -> dict[str, Any]:
    """Choose context, slots, offloaded layers and weights: the most that some node has room for."""
    facts = version.facts if version else {}
    kind = ModelKind(model.kind)
    trained = facts.get("context_length") or DEFAULT_CONTEXT
    length = min(trained, DEFAULT_CONTEXT) if kind.is_generative else trained
    rooms = list_rooms() if read_shape(facts) else ()
    values: dict[str, Any] = {}
    for num_slots, num_gpu_layers in _candidates(facts, rooms):
        values = {"context_length": length, "num_slots": num_slots}
        if num_gpu_layers is not None:
            values["num_gpu_layers"] = num_gpu_layers
        if _suits(kind, RuntimeProfile(**values), facts, rooms):
            break
    if _gains_by_conversion(kind, facts, rooms, values):
        converted = values | {"weight_type": "q8_0"}
        if _suits(kind, RuntimeProfile(**converted), facts, rooms):
            return converted
    return values


def _gains_by_conversion(
    kind: ModelKind, facts: Facts, rooms: Sequence[Room], values: dict[str, Any]
) -> bool:
    """Tell whether other weights are faster: for many sequences on a CPU, if its types are slow."""
    return (
        kind.is_generative
        and facts.get("quantization") in SLOW_TYPES
        and (facts.get("num_params") or 0) <= MAX_CONVERTED_PARAMS
        and values["num_slots"] >= WANTED_SLOTS
        and not any(room.gpus for room in rooms)
    )


def _candidates(facts: Facts, rooms: Sequence[Room]) -> Iterator[tuple[int, int | None]]:
    """Give slots and GPU layers (None: all), the best first."""
    num_slots = DEFAULT_SLOTS
    while num_slots >= WANTED_SLOTS:
        yield num_slots, None
        num_slots //= 2
    if any(room.gpus for room in rooms):
        for num_layers in range(int(facts.get("num_layers") or 0), -1, -1):
            yield WANTED_SLOTS, num_layers
    while num_slots >= 1:
        yield num_slots, None
        num_slots //= 2


def _suits(kind: ModelKind, profile: RuntimeProfile, facts: Facts, rooms: Sequence[Room]) -> bool:
    def estimate(gpus: Sequence[Device]) -> MemoryEstimate | None:
        return estimate_replica(kind=kind, profile=profile, facts=facts, gpus=gpus)

    if rooms:
        return any(room.holds(estimate(room.gpus)) for room in rooms)
    found = estimate(())
    return found is None or found.host.cache_bytes <= _unknown_budget()


def _unknown_budget() -> int:
    """Give what contexts may take while no node is known: the first node is often this machine."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return UNKNOWN_CACHE_BYTES
    return min(UNKNOWN_CACHE_BYTES, machine // UNKNOWN_SHARE)
