"""The web server: Daphne with limits, an access log without secrets, and an orderly end."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import daphne.server
from daphne import http_protocol
from daphne.endpoints import build_endpoint_description_strings
from daphne.ws_protocol import WebSocketFactory
from twisted.internet import defer

from llamero.serve.channel import LimitedChannel
from llamero.serve.requests import LimitedRequest
from llamero.streaming.flow_control import BoundedWebSocketProtocol

logger = logging.getLogger("llamero.access")

# Paths that probes ask all the time.
QUIET_PATHS = ("/health", "/static/")
MAX_WEBSOCKET_MESSAGE_BYTES = 2**20
# How long requests may take to end by themselves when the server is told to stop.
GOODBYE_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where to listen and what to let in. ``is_behind_proxy`` believes X-Forwarded-For."""

    host: str
    port: int
    max_body_bytes: int
    is_behind_proxy: bool = False


def log_access(protocol: str, action: str, details: dict[str, Any]) -> None:
    """Log one line per request or socket: never a query string, a header or a body."""
    path = str(details["path"]).partition("?")[0]
    if protocol == "http":
        level = logging.DEBUG if path.startswith(QUIET_PATHS) else logging.INFO
        logger.log(
            level,
            "%s %s %s %d bytes %.0f ms %s",
            details["method"],
            path,
            details["status"],
            details["size"],
            1000 * details["time_taken"],
            details["client"],
        )
    elif action in ("connected", "rejected", "disconnected"):
        logger.info("websocket %s %s %s", action, path, details["client"])


class Server(daphne.server.Server):  # type: ignore[misc]
    """Daphne whose end does not stumble over a connection without an application."""

    say_goodbye: Callable[[], None] = staticmethod(lambda: None)

    def kill_all_applications(self) -> defer.Deferred[Any]:
        """End what still runs, and let the reactor wait for it."""
        ending = asyncio.get_running_loop().create_task(self._end_applications())
        waiting = defer.Deferred.fromFuture(ending)
        waiting.addErrback(lambda _: None)
        return waiting

    async def _end_applications(self) -> None:
        """Leave a moment to tell clients why, then cancel what is left."""
        running = [
            task
            for details in self.connections.values()
            if (task := details.get("application_instance")) is not None and not task.done()
        ]
        if not running:
            return
        self.say_goodbye()
        _, late = await asyncio.wait(running, timeout=GOODBYE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


def serve(
    application: Any, options: ServeOptions, *, say_goodbye: Callable[[], None] | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; exits with an error when the port cannot be had.

    ``say_goodbye`` is called before the end, to make requests that run end by themselves.
    """
    LimitedRequest.max_body_bytes = options.max_body_bytes
    # Daphne's factory looks its request class up here.
    http_protocol.WebRequest = LimitedRequest
    http_protocol.HTTPFactory.protocol = LimitedChannel
    WebSocketFactory.protocol = BoundedWebSocketProtocol
    server = Server(
        application=application,
        endpoints=build_endpoint_description_strings(host=options.host, port=options.port),
        action_logger=log_access,
        websocket_max_message_size=MAX_WEBSOCKET_MESSAGE_BYTES,
        websocket_max_frame_size=MAX_WEBSOCKET_MESSAGE_BYTES,
        proxy_forwarded_address_header="X-Forwarded-For" if options.is_behind_proxy else None,
        proxy_forwarded_proto_header="X-Forwarded-Proto" if options.is_behind_proxy else None,
        application_close_timeout=5,
        ping_interval=10,
        server_name="",
    )
    if say_goodbye is not None:
        server.say_goodbye = say_goodbye
    server.run()
    if server.abort_start or not server.listening_addresses:
        raise SystemExit(1)
