"""A gateway in a process of its own, before a data plane that does as it is told."""

import subprocess
import sys
from pathlib import Path

import httpx2

from tests.databases import fill_home
from tests.processes import (
    PATIENCE_SECONDS,
    ROOT,
    child_environment,
    find_free_port,
    wait_until,
)


class Gateway:
    """A gateway with a scripted data plane; it can be stopped and started again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        fill_home(home)
        self._port = find_free_port()
        self.base_url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self._home / "gateway.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    str(ROOT / "tests/llamero/streaming/serve_scripted.py"),
                    str(self._port),
                ],
                env=child_environment(LLAMERO_HOME=str(self._home)),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._answers, what="the gateway's front page")

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)

    @property
    def home(self) -> Path:
        """Where its state lies."""
        return self._home

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def key(self) -> str:
        """An API key."""
        return (self._home / "key").read_text()

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return (self._home / "gateway.log").read_text()

    def _answers(self) -> bool:
        try:
            return httpx2.get(self.base_url).status_code == 200
        except httpx2.TransportError:
            return False
