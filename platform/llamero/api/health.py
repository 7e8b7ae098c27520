"""GET /livez and /readyz: whether this gateway works, and whether it can serve now."""

import asyncio
from typing import Any

from django.db import DatabaseError, connection
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from inference.protocol.errors import EngineError
from llamero import dispatch
from llamero.api.async_view import AsyncAPIView, json_response
from llamero.api.threads import run_in_thread
from llamero.errors import LlameroError

DATABASE_SECONDS = 3.0


class LiveView(AsyncAPIView):
    """Whether this process does its work: its threads, its loop, and what runs beside requests.

    One that does not should be started anew. What it depends on has no part in it.
    """

    authentication_classes = ()
    permission_classes = ()

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Answer; a thread has run for this request already."""
        if trouble := dispatch.get_dispatcher().trouble:
            raise _unavailable(trouble)
        return json_response({"status": "ok"})


class ReadyView(AsyncAPIView):
    """Whether this gateway can serve requests now: where it cannot, others should get them.

    Which models can be used is the same at all gateways: that is what /health tells.
    """

    authentication_classes = ()
    permission_classes = ()

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Try everything a request needs."""
        wrong = await asyncio.gather(_try_database(), _try_broker())
        checks = dict(zip(("database", "broker"), wrong, strict=True))
        if any(wrong):
            told = "; ".join(f"{name}: {what}" for name, what in checks.items() if what)
            raise _unavailable(told)
        return json_response({"status": "ok", "checks": dict.fromkeys(checks, "ok")})


async def _try_database() -> str:
    try:
        async with asyncio.timeout(DATABASE_SECONDS):
            await run_in_thread(_ask_database)
    except (DatabaseError, TimeoutError):
        return "it does not answer"
    return ""


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def _try_broker() -> str:
    try:
        await dispatch.get_dispatcher().check_link()
    except EngineError:
        return "it does not answer"
    return ""


def _unavailable(what: str) -> LlameroError:
    return LlameroError(503, "unavailable", f"Not now: {what}.", retry_after=2.0)
