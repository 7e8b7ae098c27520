"""How the memory of a deployment is shown: what a replica takes, and which nodes have room."""

from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from inference.gguf.memory import DeviceMemory, MemoryEstimate
from models_registry.models import Deployment
from models_registry.rooms import Room, list_rooms
from models_registry.selectors import estimate_deployment, version_shown
from models_registry.weights import describe_conversion

_PARTS = (
    ("weights_bytes", "Weights"),
    ("mapped_bytes", "Weights, mapped from the file"),
    ("cache_bytes", "Contexts of all slots"),
    ("compute_bytes", "Buffers of a step"),
    ("other_bytes", "Process and vocabulary"),
    ("spare_bytes", "Cold and shared prefixes, log-probabilities of prompts, at most"),
)


@dataclass(frozen=True, slots=True)
class NodeFit:
    """Whether a node has room for a replica. ``state`` is the colour, ``words`` say it."""

    room: Room
    state: str
    words: str
    devices: tuple[DeviceMemory, ...]


def show_memory(deployment: Deployment) -> SafeString:
    """Lay out what a replica takes, part by part, and how each node is off."""
    if not deployment.model_id:
        return render_to_string("models_registry/memory_panel.html", {})
    estimate = estimate_deployment(deployment)
    rooms = list_rooms(besides=deployment.slug) if estimate else ()
    context = {
        "estimate": estimate,
        "conversion": describe_conversion(deployment, version_shown(deployment)),
        "parts": _parts_of(estimate.devices) if estimate else [],
        "fits": [_judge(room, estimate_deployment(deployment, room.gpus)) for room in rooms],
    }
    return render_to_string("models_registry/memory_panel.html", context)


def _parts_of(devices: tuple[DeviceMemory, ...]) -> list[tuple[str, int]]:
    sums = [(words, sum(getattr(one, name) for one in devices)) for name, words in _PARTS]
    return [(words, num_bytes) for words, num_bytes in sums if num_bytes]


def _judge(room: Room, estimate: MemoryEstimate | None) -> NodeFit:
    if estimate is None:
        return NodeFit(room, "", "unknown", ())
    if room.holds(estimate):
        return NodeFit(room, "success", "has room", estimate.devices)
    shortage = room.describe_shortage(estimate)
    if room.could_hold(estimate):
        return NodeFit(room, "warning", f"is full: {shortage}", estimate.devices)
    return NodeFit(room, "danger", f"is too small: {shortage}", estimate.devices)
