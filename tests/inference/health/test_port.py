"""Probes hear what goes on and what does not."""

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from inference.health import port as health_port
from inference.health.port import HealthPort, open_health_port
from inference.health.progress import Progress
from tests.processes import PATIENCE_SECONDS


class Clock:
    """Seconds that a test moves on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock) -> Progress:
    return Progress(clock)


@pytest.fixture
def port(progress: Progress) -> Iterator[HealthPort]:
    port = HealthPort(
        0,
        live={"loop": progress.within("loop", 30)},
        ready={"broker": progress.within("b", 5)},
        judge_part=lambda name: "" if name == "chat-1" else "it is not of this node",
    )
    port.start()
    yield port
    port.close()


def ask(port: HealthPort, address: str) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", port.port, timeout=PATIENCE_SECONDS)
    connection.request("GET", address)
    answer = connection.getresponse()
    document: dict[str, Any] = json.loads(answer.read())
    connection.close()
    return answer.status, document


def test_it_follows_progress(port: HealthPort, clock: Clock, progress: Progress) -> None:
    assert ask(port, "/readyz") == (200, {"status": "ok", "checks": {"loop": "ok", "broker": "ok"}})
    clock.now = 6
    status, document = ask(port, "/readyz?verbose")
    assert (status, document["checks"]["broker"]) == (503, "not done for 6 s")
    assert ask(port, "/livez") == (200, {"status": "ok", "checks": {"loop": "ok"}})
    progress.note("b")
    assert ask(port, "/readyz")[0] == 200
    clock.now = 40
    assert ask(port, "/livez")[0] == 503


def test_parts_are_asked_for_by_name(port: HealthPort) -> None:
    assert ask(port, "/readyz/chat-1") == (200, {"status": "ok", "checks": {"chat-1": "ok"}})
    assert ask(port, "/readyz/..%2f")[0] == 503


def test_other_addresses_are_unknown(port: HealthPort) -> None:
    assert ask(port, "/")[0] == 404


def test_a_probe_that_says_nothing_keeps_others_waiting_for_a_moment_only(
    port: HealthPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_port._Probe, "timeout", 0.5)
    with socket.create_connection(("127.0.0.1", port.port)):
        assert ask(port, "/livez")[0] == 200


@pytest.mark.parametrize("text", ["x", "-1", "70000"])
def test_what_is_no_port_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(health_port.PORT_VARIABLE, text)
    with pytest.raises(ValueError, match="LLAMERO_HEALTH_PORT"):
        open_health_port({}, {})


def test_without_a_port_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(health_port.PORT_VARIABLE, raising=False)
    assert open_health_port({}, {}) is None
