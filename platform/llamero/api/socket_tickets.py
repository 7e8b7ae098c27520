"""POST /v1/socket-tickets: what opens a chat socket in the place of a key."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.accounts.tickets import issue_ticket
from llamero.api.async_view import AsyncAPIView, caller_of, json_response


class SocketTicketsView(AsyncAPIView):
    """Gives whoever holds a key a ticket to hand on: to a page, which then never sees the key."""

    async def post(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Give one."""
        ticket = issue_ticket(caller_of(request))
        return json_response(
            {"object": "socket_ticket", "ticket": ticket.text, "expires_at": ticket.expires_at}
        )
