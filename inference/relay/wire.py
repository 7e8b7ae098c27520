"""One raw connection to the server whose replies go straight to a callback.

The client library wakes a task per message; at one message per engine step and gateway that is most
of what a token costs, so the subscription reads its socket itself.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import hiredis
from redis.asyncio.connection import SSLConnection, parse_url


class Wire(asyncio.Protocol):
    """Calls ``on_reply`` for each reply, in order, from within the event loop."""

    def __init__(self, on_reply: Callable[[object], None]) -> None:
        self.num_heard = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._on_reply = on_reply
        self._reader = hiredis.Reader()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand on every reply that is complete."""
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            self.num_heard += 1
            self._on_reply(reply)

    def connection_lost(self, error: Exception | None) -> None:
        """Tell whoever waits for the end."""
        if not self.closed.done():
            self.closed.set_result(None)

    def send(self, *words: str) -> None:
        """Send a command without waiting for its reply."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(hiredis.pack_command(words))  # type: ignore[arg-type]

    def close(self) -> None:
        """Close at once; what was not sent is dropped."""
        if self._transport is not None:
            self._transport.abort()


async def open_wire(url: str, on_reply: Callable[[object], None]) -> Wire:
    """Connect to a unix://, redis:// or rediss:// address, and log in if it has a password."""
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = dict(parse_url(url))
    if "path" in options:
        _, wire = await loop.create_unix_connection(lambda: Wire(on_reply), options["path"])
    else:
        is_secure = options.get("connection_class") is SSLConnection
        _, wire = await loop.create_connection(
            lambda: Wire(on_reply),
            options.get("host", "localhost"),
            options.get("port", 6379),
            ssl=ssl.create_default_context() if is_secure else None,
        )
    if password := options.get("password"):
        login = [password] if "username" not in options else [options["username"], password]
        wire.send("AUTH", *login)
    return wire
