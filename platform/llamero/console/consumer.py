"""The socket of the home page: numbers as they change, for signed-in staff who may see them."""

import asyncio
from contextlib import aclosing
from importlib import import_module
from typing import Any

import msgspec
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from llamero.console.access import may_see_overview
from llamero.console.overview import Overview
from llamero.console.pulse import get_pulse
from llamero.streaming.callers import read_session_key
from llamero.streaming.origins import has_allowed_host, has_own_origin

NOT_FOR_YOU = 4403
# How soon a session that ended, or a right that was taken, ends the socket.
RECHECK_SECONDS = 10.0


class OverviewConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Sends what changed; hears nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._telling: asyncio.Task[None] | None = None
        self._session_key = ""

    async def connect(self) -> None:
        """Let staff in who come from a page of ours."""
        # A cookie is sent by whatever page asks: it counts only for pages of our own.
        if not has_allowed_host(self.scope) or not has_own_origin(self.scope):
            await self.close()
            return
        self._session_key = read_session_key(self.scope) or ""
        await self.accept()
        if not await self._may_see():
            await self.close(NOT_FOR_YOU)
            return
        self._telling = asyncio.create_task(self._tell())

    async def disconnect(self, code: int) -> None:
        """Stop reading."""
        if self._telling is not None:
            self._telling.cancel()

    async def receive(self, text_data: Any = None, bytes_data: Any = None) -> None:
        """Take no message: whoever sends one is not the page."""
        await self.close(NOT_FOR_YOU)

    async def _may_see(self) -> bool:
        return bool(await database_sync_to_async(may_session_see)(self._session_key))

    async def _tell(self) -> None:
        """Tell each overview's changes; ask now and then whether it is still for them."""
        told: dict[str, str] = {}
        loop = asyncio.get_running_loop()
        checked_at = loop.time()
        async with aclosing(get_pulse().listen()) as overviews:
            async for overview in overviews:
                if loop.time() - checked_at >= RECHECK_SECONDS:
                    checked_at = loop.time()
                    if not await self._may_see():
                        await self.close(NOT_FOR_YOU)
                        return
                told = await self._send_changes(overview, told)

    async def _send_changes(self, overview: Overview, told: dict[str, str]) -> dict[str, str]:
        values = overview.values
        changes = {name: text for name, text in values.items() if told.get(name) != text}
        frame = {"shape": overview.shape, "values": changes}
        await self.send(text_data=msgspec.json.encode(frame).decode())
        return values


def may_session_see(session_key: str) -> bool:
    """Whether a session is of somebody who may see the home page's numbers."""
    if not session_key:
        return False
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return may_see_overview(get_user(request))
