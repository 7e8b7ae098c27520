"""A whole Llamero under its own supervisor, for tests that look at it from outside."""

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.databases import fill_home
from tests.processes import ROOT, child_environment, find_free_port

CHAT_MODEL = "smollm2-135m-instruct"
EMBEDDING_MODEL = "all-minilm-l6-v2"
NUM_CHAT_SLOTS = 4
READY_SECONDS = 240
STOP_SECONDS = 60

# By the import that an admin uses; one process for all, since each start costs seconds.
PREPARE_PROGRAM = """
from pathlib import Path
from models_registry.services.deployments import create_deployment
from models_registry.services.importing import import_model_files
for path, slug, profile in {models!r}:
    version = import_model_files(paths=[Path(path)], slug=slug)
    create_deployment(model=version.model, **profile)
"""
# Small deployments load quickly and leave memory to other tests.
CHAT_PROFILE = {"context_length": 2048, "num_slots": NUM_CHAT_SLOTS, "max_queue": 32}
EMBEDDING_PROFILE = {"num_slots": 2}


@dataclass(frozen=True)
class LiveLlamero:
    """Where a running Llamero is, and how to get in."""

    home: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def base_url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_key(self) -> str:
        """The demo key."""
        return (self.home / "demo-api-key").read_text().strip()

    @property
    def admin_name(self) -> str:
        """Who may enter the admin."""
        return "admin"

    @property
    def admin_password(self) -> str:
        """The password of that user."""
        return (self.home / "admin-password").read_text().strip()

    @property
    def redis_url(self) -> str:
        """Its broker's address."""
        return f"unix://{self.home}/run/valkey.sock"

    @property
    def log(self) -> str:
        """All that was printed so far."""
        return (self.home / "up.log").read_text()


def manage(home: Path, *arguments: str) -> None:
    """Run one of the project's commands in a home."""
    subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=child_environment(LLAMERO_HOME=str(home)),
        check=True,
        timeout=READY_SECONDS,
    )


def prepare(home: Path, *models: tuple[Path, str, Mapping[str, Any]]) -> None:
    """Make a home with deployed models: of each its file, its name and its profile."""
    fill_home(home)
    program = PREPARE_PROGRAM.format(models=[(str(path), *rest) for path, *rest in models])
    manage(home, "shell", "--no-imports", "--verbosity=0", "-c", program)


def start(home: Path, port: int) -> LiveLlamero:
    """Start all parts; returns at once."""
    with (home / "up.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(port)],
            env=child_environment(LLAMERO_HOME=str(home)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return LiveLlamero(home, port, process)


def wait_until_ready(live: LiveLlamero, *, num_starts: int = 1) -> None:
    """Return when it has said so; fail with what it printed instead."""
    end = time.monotonic() + READY_SECONDS
    while len(re.findall("Llamero is ready", live.log)) < num_starts:
        if live.process.poll() is not None or time.monotonic() > end:
            raise AssertionError(f"Llamero did not become ready:\n{live.log[-6000:]}")
        time.sleep(0.1)


def stop(live: LiveLlamero) -> int:
    """Ask it to end, and give its exit code."""
    if live.process.poll() is None:
        live.process.send_signal(signal.SIGTERM)
    try:
        return live.process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        live.process.kill()
        live.process.wait()
        raise


@contextlib.contextmanager
def running_llamero(home: Path, *, chat: Path, embedding: Path) -> Iterator[LiveLlamero]:
    """Import both models into a new home, run Llamero in it, and end it."""
    prepare(
        home,
        (chat, CHAT_MODEL, CHAT_PROFILE),
        (embedding, EMBEDDING_MODEL, EMBEDDING_PROFILE),
    )
    live = start(home, find_free_port())
    try:
        wait_until_ready(live)
        yield live
    finally:
        stop(live)
