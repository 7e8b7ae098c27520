"""How states and numbers read in the admin."""

from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from models_registry.models import Deployment, DeploymentState, ModelVersion, VersionState
from models_registry.sizes import filesizeformat

_COLOURS = {
    DeploymentState.PENDING.value: "warning",
    DeploymentState.LOADING.value: "info",
    DeploymentState.READY.value: "success",
    DeploymentState.SLEEPING.value: "info",
    DeploymentState.FAILED.value: "danger",
    VersionState.IMPORTING.value: "info",
    VersionState.INSPECTING.value: "info",
    VersionState.PROBING.value: "info",
    VersionState.REJECTED.value: "danger",
    VersionState.QUARANTINED.value: "danger",
}
_FACT_NAMES = {
    "architecture": "Architecture",
    "name": "Name in the file",
    "license": "Licence",
    "quantization": "Quantization",
    "num_params": "Parameters",
    "size_bytes": "Size",
    "context_length": "Context trained for",
    "embedding_length": "Width",
    "num_layers": "Layers",
    "num_heads": "Attention heads",
    "num_kv_heads": "KV heads",
    "num_vocab": "Vocabulary",
    "tokenizer": "Tokenizer",
    "pooling": "Pooling",
    "has_chat_template": "Chat template",
    "warnings": "Warnings",
}


def show_state(thing: Deployment | ModelVersion) -> SafeString:
    """Show a state as a coloured label, alike in lists and on pages."""
    if isinstance(thing, Deployment) and thing.enabled and thing.is_draining:
        return draw_label("warning", "Draining")
    return show_label(thing.state, thing.get_state_display())


def show_label(state: str, words: str) -> SafeString:
    """Show words in the colour of a state."""
    return draw_label(_COLOURS.get(state, ""), words)


def draw_label(colour: str, words: str) -> SafeString:
    """Draw a label: success, info, warning, danger or no colour."""
    return render_to_string("unfold/helpers/label.html", {"type": colour, "text": words})


def list_facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Give what the header says, each with its name."""
    return [
        (name, _show_fact(key, facts[key]))
        for key, name in _FACT_NAMES.items()
        if facts.get(key) not in (None, "", [], 0)
    ]


def compare_facts(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Tell which facts differ between two versions, a line each."""
    return [
        f"{name}: {_show_fact(key, before[key])} becomes {_show_fact(key, after[key])}."
        for key, name in _FACT_NAMES.items()
        if key in before and key in after and before[key] != after[key]
    ]


def _show_fact(key: str, value: object) -> str:
    if key == "size_bytes" and isinstance(value, int):
        return filesizeformat(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)
