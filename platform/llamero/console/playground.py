"""The playground: a chat page for the staff, and the models it offers."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from inference.protocol.replicas import ModelKind
from llamero.console.access import staff_only, strict_page
from models_registry.selectors import ServedModel, list_served_models


@dataclass(frozen=True, slots=True)
class NumberField:
    """A number the form asks for. An empty ``default`` leaves the field out of the request."""

    name: str
    label: str
    low: str
    high: str
    default: str = ""
    step: str = "1"
    help: str = ""
    placeholder: str = ""


SLIDERS = (
    NumberField(
        "temperature", "Temperature", "0", "2", "0.8", "0.05", "0 always takes the likeliest token."
    ),
    NumberField(
        "top_p", "Top P", "0", "1", "0.95", "0.01", "Keep the likeliest tokens up to this share."
    ),
    NumberField(
        "min_p",
        "Min P",
        "0",
        "1",
        "0.05",
        "0.01",
        "Drop what is rarer than this share of the best.",
    ),
)
NUMBERS = (
    NumberField("top_k", "Top K", "0", "100000", "40"),
    NumberField("max_tokens", "Max tokens", "1", "1000000", "512"),
    NumberField("seed", "Seed", "0", "4294967294", placeholder="random"),
)


@require_safe
@never_cache
@strict_page
@staff_only
def show_playground(request: HttpRequest) -> HttpResponse:
    """Show the page; everything else happens in the browser and on the chat socket."""
    context = {"sliders": SLIDERS, "numbers": NUMBERS}
    return render(request, "console/playground.html", context)


@require_safe
@never_cache
@staff_only
def list_playground_models(request: HttpRequest) -> JsonResponse:
    """List the chat models and how each is doing."""
    models = [_describe(one) for one in list_served_models() if one.kind is ModelKind.CHAT]
    return JsonResponse({"models": models})


def _describe(served: ServedModel) -> dict[str, Any]:
    facts = [
        str(served.facts[name])
        for name in ("architecture", "quantization")
        if served.facts.get(name)
    ]
    return {
        "id": served.id,
        "title": served.title,
        "state": served.state,
        "reason": served.reason,
        "facts": [*facts, f"{served.profile.context_length:,} tokens of context"],
    }
