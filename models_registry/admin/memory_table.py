"""What memory a version takes at several contexts and slot counts, and which nodes have it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from inference.gguf.memory import MemoryEstimate
from inference.protocol.replicas import ModelKind, RuntimeProfile
from models_registry.memory import estimate_replica, read_shape
from models_registry.rooms import Room

CONTEXTS = (2048, 8192, 32_768, 131_072)
SLOTS = (1, 4, 16)
# More nodes than this are counted instead of named.
MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Fit:
    """How a node is off: fits, full or small, in colour and words."""

    node: str
    variant: str
    words: str


@dataclass(frozen=True, slots=True)
class MemoryCell:
    """One combination: what it takes with every slot full, and where there is room."""

    full_bytes: int
    fits: tuple[Fit, ...]
    summary: Fit


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """Rows by context, columns by slots; without rows where the header was never read."""

    slots: tuple[int, ...] = ()
    rows: tuple[tuple[int, tuple[MemoryCell, ...]], ...] = ()
    num_nodes: int = 0
    names_nodes: bool = False


def tabulate_memory(kind: ModelKind, facts: dict[str, Any], rooms: Sequence[Room]) -> MemoryTable:
    """Work the table out for contexts up to what the model was trained for."""
    if read_shape(facts) is None:
        return MemoryTable()
    trained = facts.get("context_length") or CONTEXTS[1]
    contexts = [one for one in CONTEXTS if one < trained] + [trained]
    rows = tuple(
        (context, tuple(_make_cell(kind, facts, rooms, context, slots) for slots in SLOTS))
        for context in contexts
    )
    return MemoryTable(SLOTS, rows, len(rooms), len(rooms) <= MAX_NAMED)


def _make_cell(
    kind: ModelKind, facts: dict[str, Any], rooms: Sequence[Room], context: int, slots: int
) -> MemoryCell:
    profile = RuntimeProfile(context_length=context, num_slots=slots)

    def estimate(room: Room | None) -> MemoryEstimate | None:
        gpus = room.gpus if room else ()
        return estimate_replica(kind=kind, profile=profile, facts=facts, gpus=gpus)

    fits = tuple(_judge(room, estimate(room)) for room in rooms)
    alone = estimate(None)
    return MemoryCell(alone.full_bytes if alone else 0, fits, _sum_up(fits))


def _judge(room: Room, estimate: MemoryEstimate | None) -> Fit:
    if room.holds(estimate):
        return Fit(room.node, "success", "has room")
    if room.could_hold(estimate):
        return Fit(room.node, "warning", "is full now")
    return Fit(room.node, "danger", "is too small")


def _sum_up(fits: Sequence[Fit]) -> Fit:
    """Say it of all nodes together."""
    count = sum(one.variant == "success" for one in fits)
    if count:
        return Fit("", "success", f"{count} of {len(fits)} nodes have room")
    if any(one.variant == "warning" for one in fits):
        return Fit("", "warning", "no node has room now")
    return Fit("", "danger", "no node is large enough") if fits else Fit("", "", "no node runs")
