"""The playground's pages, and the models they offer."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from inference.protocol.replicas import ModelKind
from llamero.console.access import staff_only, strict_page
from llamero.playground.documents import describe_shared_message
from llamero.playground.json_views import json_view
from llamero.playground.selectors import find_shared_chat, list_shown_messages
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
def show_playground(request: HttpRequest, chat_id: str = "") -> HttpResponse:
    """Show the page; everything else happens in the browser and on the chat socket."""
    context = {
        "sliders": SLIDERS,
        "numbers": NUMBERS,
        "chat_id": chat_id,
        "chat_days": settings.CHAT_RETENTION_DAYS,
        "tab": "chat",
    }
    return render(request, "playground/chat.html", context)


@require_safe
@never_cache
@strict_page
@staff_only
def show_embeddings(request: HttpRequest) -> HttpResponse:
    """Show how alike texts are."""
    return render(request, "playground/embeddings.html", {"tab": "embeddings"})


@require_safe
@never_cache
@strict_page
@staff_only
def show_rerank(request: HttpRequest) -> HttpResponse:
    """Show which documents answer a query best."""
    return render(request, "playground/rerank.html", {"tab": "rerank"})


@require_safe
@never_cache
@strict_page
@login_required(login_url=reverse_lazy("people:sign-in"))
def show_shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show what the owner of a chat sees of it, to anybody who is signed in; nothing to change."""
    chat = find_shared_chat(token)
    if chat is None:
        raise Http404
    columns = [[describe_shared_message(one) for one in path] for path in list_shown_messages(chat)]
    return render(request, "playground/shared.html", {"chat": chat, "columns": columns})


def _list_models(request: HttpRequest) -> dict[str, Any]:
    return {"models": [_describe(one) for one in list_served_models()]}


list_playground_models = json_view(get=_list_models)


def _describe(served: ServedModel) -> dict[str, Any]:
    facts = [
        str(served.facts[name])
        for name in ("architecture", "quantization")
        if served.facts.get(name)
    ]
    return {
        "id": served.id,
        "kind": served.kind.value,
        "embeds": served.kind is ModelKind.EMBEDDING or served.profile.serves_embeddings,
        "title": served.title,
        "state": served.state,
        "reason": served.reason,
        "defaults": _describe_defaults(served.request_defaults),
        "facts": [*facts, f"{served.profile.context_length:,} tokens of context"],
    }


def _describe_defaults(defaults: dict[str, Any]) -> dict[str, Any]:
    """Give the values that the form begins with where the deployment has some."""
    names = {field.name for field in (*SLIDERS, *NUMBERS)}
    found = {name: value for name, value in defaults.items() if name in names}
    if (length := defaults.get("n_predict", 0)) > 0:
        found["max_tokens"] = length
    return found
