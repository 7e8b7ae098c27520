"""The base of llama-server's routes: numeric error codes, and a model one need not name."""

from typing import Any

from rest_framework.request import Request

from inference.protocol.replicas import ModelKind
from llamero.api.async_view import AsyncAPIView, caller_of
from llamero.api.json_body import read_json_object
from llamero.api.model_choice import ANY_KIND, look_up_model, named_model
from llamero.api.paths import Dialect
from models_registry.selectors import ServedModel


class NativeView(AsyncAPIView):
    """``/m/<model>/…`` names the model, or the body, or ``?model=``; else the first that fits."""

    dialect = Dialect.LLAMA_SERVER
    may_leave_model_out = True

    def find_model(
        self, request: Request, kinds: frozenset[ModelKind], body: dict[str, Any] | None = None
    ) -> ServedModel:
        """Find the model of this request."""
        return self.choose_model(self.find_name(request, body), kinds)

    def find_routes(self, request: Request) -> tuple[ServedModel, ...]:
        """Find all deployments of the model of this request: to look at them, not to use one."""
        served = self.find_model(request, ANY_KIND)
        return look_up_model(served.id, caller_of(request)).routes or (served,)

    def find_name(self, request: Request, body: dict[str, Any] | None = None) -> object:
        """Give the model's name as it is given, None where it is not."""
        return named_model(
            self.kwargs, (body or {}).get("model"), request.query_params.get("model")
        )

    def read_body(self, request: Request) -> dict[str, Any]:
        """Read the JSON object of this request."""
        return read_json_object(request._request)
