"""GET /v1/models and /v1/models/{id}: what this key may use."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.model_choice import ANY_KIND, choose_model, list_usable_models
from models_registry.selectors import ServedModel

_META = {
    "n_vocab": "num_vocab",
    "n_ctx_train": "context_length",
    "n_embd": "embedding_length",
    "n_params": "num_params",
    "size": "size_bytes",
    "ftype": "quantization",
    "architecture": "architecture",
}


class ModelListView(AsyncAPIView):
    """List the models."""

    def prepare(self, request: Request) -> None:
        """Look them up."""
        self.served = list_usable_models(caller_of(request))

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Describe each."""
        return json_response({"object": "list", "data": [_describe(one) for one in self.served]})


class ModelView(AsyncAPIView):
    """Describe one model."""

    def prepare(self, request: Request) -> None:
        """Look it up."""
        self.served = choose_model(self.kwargs["name"], caller_of(request), ANY_KIND)

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Describe it."""
        return json_response(_describe(self.served))


def _describe(served: ServedModel) -> dict[str, Any]:
    facts = served.facts
    meta = {name: facts[source] for name, source in _META.items() if source in facts}
    return {
        "id": served.id,
        "object": "model",
        "created": served.created,
        "owned_by": served.owned_by,
        "aliases": list(served.aliases),
        "kind": served.kind.value,
        "meta": meta | {"n_ctx": served.profile.context_length},
    }
