"""GET /v1/runs/{id}/events and DELETE /v1/runs/{id}: going on with a stream, or ending it."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero import dispatch
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.resuming import find_kept_run, no_such_run, retell_run
from llamero.dispatch.dispatcher import Cancellation


class RunEventsView(AsyncAPIView):
    """The rest of a stream, in the shape it began in."""

    async def get(self, request: Request, run_id: str, **kwargs: Any) -> HttpResponseBase:
        """Go on after ``Last-Event-ID``, else after ``?starting_after=``, else from the start.

        A browser that connects anew keeps the address and moves the header on.
        """
        param, place = "Last-Event-ID", request.headers.get("Last-Event-ID")
        if place is None:
            param, place = "starting_after", request.query_params.get("starting_after", "")
        return await retell_run(run_id, caller_of(request), place, param)


class RunView(AsyncAPIView):
    """One run."""

    async def delete(self, request: Request, run_id: str, **kwargs: Any) -> HttpResponseBase:
        """Cancel it, whoever reads it; what was told until then is kept as long as ever."""
        kept = await find_kept_run(run_id, caller_of(request))
        outcome = await dispatch.get_dispatcher().cancel_jobs(kept.jobs)
        if outcome is Cancellation.UNKNOWN:
            raise no_such_run()
        is_cancelled = outcome is Cancellation.STOPPED
        return json_response({"id": run_id, "object": "run", "cancelled": is_cancelled})
