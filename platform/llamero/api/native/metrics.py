"""GET /metrics: what Prometheus collects, of the models that a key may use, or of one of them."""

import asyncio
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero import dispatch
from llamero.accounts.authentication import MetricsAuthentication
from llamero.accounts.scopes import Scope
from llamero.api.async_view import caller_of
from llamero.api.model_choice import ANY_KIND, list_usable_models
from llamero.api.native.exposition import (
    CONTENT_TYPE,
    Measured,
    describe_as_llama_server,
    describe_replicas,
    write,
)
from llamero.api.native.view import NativeView
from models_registry.selectors import ServedModel

_START_HEADER = "Process-Start-Time-Unix"


class MetricsView(NativeView):
    """Adds a model's replicas up in llama-server's names, and tells of each in Llamero's own."""

    scope = Scope.MODELS
    authentication_classes = (MetricsAuthentication,)
    served: list[ServedModel]

    def prepare(self, request: Request) -> None:
        """Find the models."""
        if self.find_name(request) is None:
            self.served = list_usable_models(caller_of(request))
        else:
            self.served = [self.find_model(request, ANY_KIND)]

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Measure them; a look wakes nothing."""
        measured = await asyncio.gather(*map(_measure, self.served))
        families = [*describe_as_llama_server(measured), *describe_replicas(measured)]
        response = HttpResponse(write(families), content_type=CONTENT_TYPE)
        starts = [replica.started_at for one in measured for replica in one.replicas]
        response[_START_HEADER] = str(int(min(starts, default=0.0)))
        return response


async def _measure(served: ServedModel) -> Measured:
    dispatcher = dispatch.get_dispatcher()
    replicas = await dispatcher.replicas(served.deployment)
    num_waiting = await dispatcher.num_waiting(served.deployment)
    return Measured(served.id, replicas, num_waiting)
