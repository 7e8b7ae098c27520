"""The folder that holds all state: its layout, and the lock that keeps it to one supervisor."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from llamero.sockets import make_private_folder, valkey_socket


class StartRefused(Exception):
    """Llamero cannot start here; the message names the cause and its cure."""


@dataclass(frozen=True, slots=True)
class Home:
    """Paths under LLAMERO_HOME."""

    path: Path

    @property
    def run(self) -> Path:
        """Locks, sockets, the report of the first run."""
        return self.path / "run"

    @property
    def logs(self) -> Path:
        """One file per part."""
        return self.path / "logs"

    @property
    def valkey_data(self) -> Path:
        """The append-only file of the embedded server."""
        return self.path / "valkey"

    @property
    def socket(self) -> Path:
        """Where the embedded server listens."""
        return valkey_socket(self.path)

    @property
    def admin_password(self) -> Path:
        """Made on the first run."""
        return self.path / "admin-password"

    @property
    def demo_key(self) -> Path:
        """Made on the first run."""
        return self.path / "demo-api-key"

    @property
    def report(self) -> Path:
        """What bootstrap found: the deployments to wait for."""
        return self.run / "bootstrap.json"

    @property
    def imports(self) -> Path:
        """Where an admin puts files to import them."""
        return self.path / "import"

    def prepare(self) -> None:
        """Make the folders."""
        self.path.mkdir(parents=True, exist_ok=True)
        for folder in (self.run, self.logs, self.valkey_data, self.imports, self.socket.parent):
            make_private_folder(folder)

    def lock(self) -> IO[str]:
        """Take the home for this process until the file is closed; raises StartRefused."""
        file = (self.run / "supervisor.lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            file.close()
            raise StartRefused(
                f"Llamero already runs in {self.path} (process {owner}).\n"
                "Stop that one first, or give this one its own state: LLAMERO_HOME=/some/folder"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        return file
