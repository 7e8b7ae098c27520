"""How the memory of a deployment is shown: what a replica takes, and which nodes have room."""

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from inference.gguf.memory import DeviceMemory, MemoryEstimate

_PARTS = (
    ("weights_bytes", "Weights"),
    ("mapped_bytes", "Weights, mapped from the file"),
    ("cache_bytes", "Contexts of all slots"),
    ("compute_bytes", "Buffers of a step"),
    ("other_bytes", "Process and vocabulary"),
    ("spare_bytes", "Cold prefixes and log-probabilities of prompts, at most"),
)


def show_memory(estimate: MemoryEstimate | None) -> SafeString:
    """Lay an estimate out: idle, at most, and each part of it."""
    context = {"estimate": estimate, "parts": _parts_of(estimate.devices) if estimate else []}
    return render_to_string("models_registry/memory_panel.html", context)


def _parts_of(devices: tuple[DeviceMemory, ...]) -> list[tuple[str, int]]:
    sums = [(words, sum(getattr(one, name) for one in devices)) for name, words in _PARTS]
    return [(words, num_bytes) for words, num_bytes in sums if num_bytes]
