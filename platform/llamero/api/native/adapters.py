"""GET and POST /lora-adapters: which adapters requests may choose from."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.replicas import ModelKind
from llamero import dispatch
from llamero.accounts.scopes import Scope
from llamero.api.async_view import json_response
from llamero.api.native.view import NativeView
from llamero.errors import LlameroError

_GENERATIVE = frozenset(kind for kind in ModelKind if kind.is_generative)


class AdaptersView(NativeView):
    """Lists the adapters of a deployment. Their scales belong to its admin and to each request."""

    scope = Scope.MODELS

    def prepare(self, request: Request) -> None:
        """Find the model."""
        self.served = self.find_model(request, _GENERATIVE)

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """List them; file paths stay on the server, so ``path`` is the name."""
        facts = await dispatch.get_dispatcher().facts(self.served.deployment, waits=False)
        return json_response(
            [
                {
                    "id": at,
                    "name": adapter.name,
                    "path": adapter.name,
                    "scale": adapter.scale,
                    "task_name": "",
                    "prompt_prefix": "",
                }
                for at, adapter in enumerate(facts.adapters)
            ]
        )

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Refuse to set scales for everybody: one client's choice must not be another's."""
        raise LlameroError(
            403,
            "scales_are_not_shared",
            "Scales that apply to all requests are set in the admin, on the deployment. "
            'Choose for a request by its field lora: [{"id": 0, "scale": 1.0}].',
        )
