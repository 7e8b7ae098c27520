"""The port at which probes ask: /livez, does it work at all; /readyz, can it do its work now."""

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from inference.health.progress import Check

logger = logging.getLogger(__name__)
JudgePart = Callable[[str], str]
PORT_VARIABLE = "LLAMERO_HEALTH_PORT"
PROBE_SECONDS = 2.0


class HealthPort:
    """Answers 200 while all checks of an address find nothing wrong, else 503 and what it is.

    Ready is only what lives. ``judge_part`` says what is wrong with a part of that name, at
    /readyz/<name>. One probe is answered at a time, and none for long.
    """

    def __init__(
        self,
        port: int,
        *,
        live: Mapping[str, Check],
        ready: Mapping[str, Check],
        judge_part: JudgePart | None = None,
    ) -> None:
        checks = {"/livez": dict(live), "/readyz": {**live, **ready}}
        handler = type("Probe", (_Probe,), {"checks": checks, "judge_part": judge_part})
        self._server = HTTPServer(("", port), handler)
        self.port: int = self._server.server_port

    def start(self) -> None:
        """Answer from a thread of its own, until the process ends."""
        thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)
        thread.start()
        logger.info("probes are answered at port %d", self.port)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


def open_health_port(
    live: Mapping[str, Check], ready: Mapping[str, Check], judge_part: JudgePart | None = None
) -> HealthPort | None:
    """Answer probes where the environment says so; raises ValueError for what is no port."""
    text = os.environ.get(PORT_VARIABLE) or "0"
    if not text.isdecimal() or int(text) > 65535:
        raise ValueError(f"{PORT_VARIABLE} must be a port")
    if not int(text):
        return None
    port = HealthPort(int(text), live=live, ready=ready, judge_part=judge_part)
    port.start()
    return port


class _Probe(BaseHTTPRequestHandler):
    """One probe. What it sends after its first line counts for nothing."""

    timeout = PROBE_SECONDS
    checks: Mapping[str, Mapping[str, Check]] = {}
    # Set on the type, and called without the probe.
    judge_part: JudgePart | None = None

    def do_GET(self) -> None:
        """Answer it."""
        checks = self._find_checks(self.path.partition("?")[0])
        if checks is None:
            self._answer(404, {"status": "unknown address"})
            return
        found = {name: check() for name, check in checks.items()}
        is_well = not any(found.values())
        document = {
            "status": "ok" if is_well else "unavailable",
            "checks": {name: wrong or "ok" for name, wrong in found.items()},
        }
        self._answer(200 if is_well else 503, document)

    def _find_checks(self, address: str) -> Mapping[str, Check] | None:
        judge_part, name = type(self).judge_part, address.removeprefix("/readyz/")
        if judge_part is None or name == address:
            return self.checks.get(address)
        return {name: partial(judge_part, name)}

    def log_message(self, *_: Any) -> None:
        """Log no probe."""

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
