"""GET /metrics: what Prometheus collects, of the models that a key may use, or of one of them."""

import asyncio
from itertools import chain
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero import dispatch
from llamero.accounts.authentication import MetricsAuthentication
from llamero.accounts.scopes import Scope
from llamero.api.async_view import caller_of
from llamero.api.model_choice import list_usable_models, look_up_model
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
            self.served = [look_up_model(self.find_name(request), caller_of(request))]

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Measure them; a look wakes nothing."""
        measured = await asyncio.gather(*map(_measure, self.served))
        families = [*describe_as_llama_server(measured), *describe_replicas(measured)]
        response = HttpResponse(write(families), content_type=CONTENT_TYPE)
        starts = [replica.started_at for one in measured for replica in one.replicas]
        response[_START_HEADER] = str(int(min(starts, default=0.0)))
        return response


async def _measure(served: ServedModel) -> Measured:
    """Count what all deployments of a model do."""
    dispatcher = dispatch.get_dispatcher()
    deployments = [one.deployment for one in served.routes or (served,)]
    replicas = await asyncio.gather(*map(dispatcher.replicas, deployments))
    waiting = await asyncio.gather(*map(dispatcher.num_waiting, deployments))
    return Measured(served.id, list(chain.from_iterable(replicas)), sum(waiting))
