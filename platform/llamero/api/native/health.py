"""GET /health: whether some model can be used, and when one may be where none can."""

import time
from itertools import chain
from typing import Any

from django.db import DatabaseError
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.replicas import ReplicaState, ReplicaStatus
from llamero import dispatch
from llamero.api.async_view import json_response
from llamero.api.errors import LONGEST_RETRY_SECONDS, RETRY_SECONDS
from llamero.api.model_choice import list_all_models
from llamero.api.native.view import NativeView
from llamero.dispatch.wakening import HELP_SECONDS
from llamero.errors import LlameroError
from models_registry.models import DeploymentState

# Of these the controller will start a replica, or has one started, without being asked.
_EXPECTED = (DeploymentState.LOADING, DeploymentState.READY)


class HealthView(NativeView):
    """Tell the world whether requests can be answered, and nothing else."""

    authentication_classes = ()
    permission_classes = ()

    def prepare(self, request: Request) -> None:
        """Read which deployments count."""
        try:
            models = list_all_models()
        except DatabaseError:
            raise _unavailable("The database is unavailable", RETRY_SECONDS) from None
        routes = chain.from_iterable(served.routes or (served,) for served in models)
        self.states = {route.deployment: route.state for route in routes}

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Answer 200 if some replica is ready, or a request would have one loaded."""
        beating = await dispatch.get_dispatcher().beating_replicas()
        replicas = [one for one in beating if one.deployment in self.states]
        expected = set(self.states.values())
        is_ready = any(one.state is ReplicaState.READY for one in replicas)
        if is_ready or DeploymentState.SLEEPING in expected:
            return json_response({"status": "ok"})
        waits = [_seconds_left(one) for one in replicas if one.state.is_coming]
        if waits:
            raise _unavailable("Loading model", min(waits))
        if not replicas and not expected.isdisjoint(_EXPECTED):
            raise _unavailable("Loading model", RETRY_SECONDS)
        raise _unavailable("No model is ready", HELP_SECONDS)


def _seconds_left(replica: ReplicaStatus) -> float:
    """Guess how long a replica still loads, from the share it has loaded by now."""
    elapsed = time.time() - replica.started_at
    if not replica.started_at or elapsed <= 0 or not 0 < replica.progress <= 1:
        return RETRY_SECONDS
    return min(elapsed * (1 / replica.progress - 1), LONGEST_RETRY_SECONDS)


def _unavailable(message: str, retry_after: float) -> LlameroError:
    return LlameroError(503, "unavailable", message, retry_after=retry_after)
