"""The base of llama-server's routes: numeric error codes, and a model one need not name."""

from typing import Any

from rest_framework.request import Request

from inference.protocol.replicas import ModelKind
from llamero.api.async_view import AsyncAPIView, caller_of
from llamero.api.json_body import read_json_object
from llamero.api.model_choice import choose_default_model, choose_model, named_model
from llamero.api.paths import Dialect
from models_registry.selectors import ServedModel


class NativeView(AsyncAPIView):
    """``/m/<model>/…`` names the model, or the body, or ``?model=``; else the first that fits."""

    dialect = Dialect.LLAMA_SERVER

    def find_model(
        self, request: Request, kinds: frozenset[ModelKind], body: dict[str, Any] | None = None
    ) -> ServedModel:
        """Find the model of this request."""
        caller = caller_of(request)
        named = self.find_name(request, body)
        if named is None:
            return choose_default_model(caller, kinds)
        return choose_model(named, caller, kinds)

    def find_name(self, request: Request, body: dict[str, Any] | None = None) -> object:
        """Give the model's name as it is given, None where it is not."""
        return named_model(
            self.kwargs, (body or {}).get("model"), request.query_params.get("model")
        )

    def read_body(self, request: Request) -> dict[str, Any]:
        """Read the JSON object of this request."""
        return read_json_object(request._request)
