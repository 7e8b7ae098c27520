"""The web server: Daphne with limits, an access log without secrets, and an orderly end."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import daphne.server
from daphne import http_protocol
from daphne.endpoints import build_endpoint_description_strings
from daphne.ws_protocol import WebSocketFactory
from twisted.internet import defer

from llamero.accounts.networks import Network
from llamero.api.paths import UPLOAD_EXTENSION
from llamero.serve.channel import LimitedChannel
from llamero.serve.forwarding import Proxies
from llamero.serve.requests import LimitedRequest
from llamero.serve.status_words import teach_twisted
from llamero.streaming.flow_control import BoundedWebSocketProtocol

logger = logging.getLogger("llamero.access")

# Paths that probes ask all the time.
QUIET_PATHS = ("/health", "/livez", "/readyz", "/static/")
MAX_WEBSOCKET_MESSAGE_BYTES = 2**20
# How long requests may take to end by themselves when the server is told to stop.
GOODBYE_SECONDS = 0.4
DRAIN_STEP_SECONDS = 0.05
# How much of a file is read before its reader takes it, and how often that is looked at.
FILE_AHEAD_BYTES, FILE_STEP_SECONDS = 2**20, 0.01
# How many connections the system holds until they are taken, where it is set to hold as many: with
# Twisted's 50, a burst of a few hundred loses some.
BACKLOG = 4096


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where to listen and what to let in. ``is_behind_proxy`` believes X-Forwarded-For.

    Of those who connect only ``trusted_proxies`` are believed, where there are any.

    Files may have ``max_upload_bytes``, pieces of models' files ``max_chunk_bytes``; both are
    written to ``upload_folder`` while they come. Pages of ``allowed_origins`` may read why they are
    refused. ``drain_seconds`` is how long requests may go on when the server is told to stop.
    """

    host: str
    port: int
    max_body_bytes: int
    max_upload_bytes: int = 4 * 2**20
    max_chunk_bytes: int = 4 * 2**20
    upload_folder: str | None = None
    arrival_seconds: int = 20
    allowed_origins: frozenset[str] = frozenset()
    is_behind_proxy: bool = False
    trusted_proxies: tuple[Network, ...] = ()
    drain_seconds: float = 0.0


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
    """Daphne that drains before its end, and does not stumble over a line without an application.

    ``has_work`` tells of answers under way, whatever they go out by.
    """

    say_goodbye: Callable[[], None] = staticmethod(lambda: None)
    has_work: Callable[[], bool] = staticmethod(lambda: False)
    drain_seconds = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ports: list[Any] = []

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Begin to serve a request; a file that came with it is handed on as it lies on disk."""
        if (upload := getattr(protocol, "upload", None)) is not None:
            scope["extensions"] = {UPLOAD_EXTENSION: {"file": upload}}
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send a part of an answer; a file is only read as fast as its reader takes it."""
        await super().handle_reply(protocol, message)
        if message["type"] == "http.response.start":
            protocol.is_file = any(
                name == b"content-length" for name, _ in message.get("headers", ())
            )
        elif message.get("more_body") and protocol.is_file:
            while protocol.num_unread > FILE_AHEAD_BYTES:
                await asyncio.sleep(FILE_STEP_SECONDS)

    def listen_success(self, port: Any) -> None:
        """Note a port that is open now."""
        super().listen_success(port)
        self._ports.append(port)

    def kill_all_applications(self) -> defer.Deferred[Any]:
        """End what still runs, and let the reactor wait for it."""
        ending = asyncio.get_running_loop().create_task(self._end_applications())
        waiting = defer.Deferred.fromFuture(ending)
        waiting.addErrback(lambda _: None)
        return waiting

    async def _end_applications(self) -> None:
        """Let requests end, leave a moment to tell clients why, then cancel what is left."""
        await self._drain()
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

    async def _drain(self) -> None:
        """Take no new connections, so that clients go elsewhere, and wait for those at work."""
        for port in self._ports:
            port.stopListening()
        ends = time.monotonic() + self.drain_seconds
        while time.monotonic() < ends and (self.has_work() or self._has_unanswered()):
            await asyncio.sleep(DRAIN_STEP_SECONDS)

    def _has_unanswered(self) -> bool:
        """Tell whether a request waits for its answer; pages that listen for ever do not count."""
        return any(
            isinstance(line, LimitedRequest) and line.has_arrived and not line.startedWriting
            for line in self.connections
        )


def _bound_requests(options: ServeOptions) -> None:
    """Have Daphne use our classes for requests and connections, with their limits."""
    LimitedRequest.max_body_bytes = options.max_body_bytes
    LimitedRequest.max_upload_bytes = options.max_upload_bytes
    LimitedRequest.max_chunk_bytes = options.max_chunk_bytes
    LimitedRequest.upload_folder = options.upload_folder
    LimitedRequest.arrival_seconds = options.arrival_seconds
    LimitedRequest.allowed_origins = options.allowed_origins
    LimitedRequest.proxies = Proxies(options.trusted_proxies)
    teach_twisted()
    # Daphne's factory looks its request class up here.
    http_protocol.WebRequest = LimitedRequest
    http_protocol.HTTPFactory.protocol = LimitedChannel
    WebSocketFactory.protocol = BoundedWebSocketProtocol


def _list_endpoints(options: ServeOptions) -> list[str]:
    """Say where to listen, as Twisted reads it."""
    places = build_endpoint_description_strings(host=options.host, port=options.port)
    return [f"{place}:backlog={BACKLOG}" for place in places]


def serve(
    application: Any,
    options: ServeOptions,
    *,
    has_work: Callable[[], bool] | None = None,
    say_goodbye: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; exits with an error when the port cannot be had.

    ``has_work`` tells what to wait for before the end. ``say_goodbye`` is called when that takes
    too long, to make requests that run end by themselves.
    """
    _bound_requests(options)
    server = Server(
        application=application,
        endpoints=_list_endpoints(options),
        action_logger=log_access,
        websocket_max_message_size=MAX_WEBSOCKET_MESSAGE_BYTES,
        websocket_max_frame_size=MAX_WEBSOCKET_MESSAGE_BYTES,
        proxy_forwarded_address_header="X-Forwarded-For" if options.is_behind_proxy else None,
        proxy_forwarded_proto_header="X-Forwarded-Proto" if options.is_behind_proxy else None,
        application_close_timeout=5,
        ping_interval=10,
        server_name="",
    )
    server.drain_seconds = options.drain_seconds
    if has_work is not None:
        server.has_work = has_work
    if say_goodbye is not None:
        server.say_goodbye = say_goodbye
    server.run()
    if server.abort_start or not server.listening_addresses:
        raise SystemExit(1)
