"""GET /v1/models and /v1/models/{id}: what this key may use, as OpenAI tells it, or Anthropic."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.accounts.scopes import Scope
from llamero.api.anthropic.models import describe_model, list_page
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.model_choice import (
    GENERATIVE,
    list_usable_models,
    look_up_model,
    named_model,
)
from llamero.api.paths import ANTHROPIC_VERSION_HEADER, Dialect
from models_registry.models import DeploymentState
from models_registry.selectors import ServedModel

_META = {
    "n_vocab": "num_vocab",
    "n_ctx_train": "context_length",
    "n_embd": "embedding_length",
    "n_params": "num_params",
    "size": "size_bytes",
    "architecture": "architecture",
}
# llama.cpp's numbers of kinds of vocabularies, by the names that files have for them.
_VOCAB_TYPES = {"llama": 1, "gpt2": 2, "bert": 3, "t5": 4, "rwkv": 5, "plamo2": 6}
# llama-server's words for what becomes of a model, the best of a model's deployments first.
_STATUSES = {
    DeploymentState.READY: "loaded",
    DeploymentState.LOADING: "loading",
    DeploymentState.PENDING: "loading",
    DeploymentState.SLEEPING: "sleeping",
}


class ModelsView(AsyncAPIView):
    """Speaks as Anthropic does to clients that name a version of its API."""

    scope = Scope.MODELS

    async def dispatch(  # type: ignore[override]
        self, request: Any, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Choose the dialect, then run the request."""
        if ANTHROPIC_VERSION_HEADER in request.headers:
            self.dialect = Dialect.ANTHROPIC
        return await super().dispatch(request, *args, **kwargs)


class ModelListView(ModelsView):
    """List the models."""

    def prepare(self, request: Request) -> None:
        """Look them up; below a model's address there is that one."""
        caller, model = caller_of(request), self.kwargs.get("model")
        if model is None:
            self.served = list_usable_models(caller)
        else:
            self.served = [look_up_model(model, caller)]

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Describe each; Anthropic's clients expect none but those that chat."""
        if self.dialect is Dialect.ANTHROPIC:
            chatting = [one for one in self.served if one.kind in GENERATIVE]
            return json_response(list_page(chatting, request.query_params))
        return json_response(
            {
                "object": "list",
                "data": [_describe(one) for one in self.served],
                "models": [_describe_as_ollama(one) for one in self.served],
            }
        )


class ModelView(ModelsView):
    """Describe one model; below a model's address that one, by whatever name."""

    def prepare(self, request: Request) -> None:
        """Look it up."""
        name = named_model(self.kwargs, self.kwargs["name"])
        self.served = look_up_model(name, caller_of(request))

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Describe it."""
        is_openai = self.dialect is Dialect.OPENAI
        return json_response((_describe if is_openai else describe_model)(self.served))


def _describe(served: ServedModel) -> dict[str, Any]:
    facts = served.facts
    meta = {name: facts[source] for name, source in _META.items() if source in facts}
    if served.quantization:
        meta["ftype"] = served.quantization
    meta["vocab_type"] = _VOCAB_TYPES.get(str(facts.get("tokenizer", "")), 0)
    return {
        "id": served.id,
        "object": "model",
        "created": served.created,
        "owned_by": served.owned_by,
        "aliases": list(served.aliases),
        "tags": [],
        "kind": served.kind.value,
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "meta": meta | {"n_ctx": served.profile.context_length},
        "status": _describe_status(served),
    }


def _describe_status(served: ServedModel) -> dict[str, Any]:
    """Tell whether a request would be answered at once, later, or not."""
    states = {route.state for route in served.routes or (served,)}
    found = next((word for state, word in _STATUSES.items() if state in states), "")
    return {"value": found or "unloaded", "failed": not found and DeploymentState.FAILED in states}


def _describe_as_ollama(served: ServedModel) -> dict[str, Any]:
    """Give llama-server's second list, for clients that look where Ollama has it."""
    facts = served.facts
    family = str(facts.get("architecture", ""))
    return {
        "name": served.id,
        "model": served.id,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": served.title,
        "tags": [],
        "capabilities": ["completion" if served.kind.is_generative else served.kind.value],
        "parameters": "",
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": family,
            "families": [family],
            "parameter_size": str(facts.get("num_params", "")),
            "quantization_level": served.quantization,
        },
    }
