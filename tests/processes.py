"""Find ports, wait for things, and look at processes: for tests that start real programs."""

import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
PYTHONPATH = os.pathsep.join((str(ROOT), str(ROOT / "platform")))

# A busy machine is slow, not wrong: this long is waited for what should come at once.
PATIENCE_SECONDS = 60.0
# Below all that systems choose for connections by themselves, one of which might take it meanwhile.
_PORTS = range(12_000, 32_000)
_dice = random.SystemRandom()


def find_free_port() -> int:
    """Give a port that was free a moment ago, and that hardly anybody asks for."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port := _dice.choice(_PORTS)))
            except OSError:
                continue
            return port


def child_environment(**extra: str) -> dict[str, str]:
    """Give the environment for a child: both source roots, and no settings but the given ones."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("LLAMERO_")}
    return {
        **base,
        "PYTHONPATH": PYTHONPATH,
        "DJANGO_SETTINGS_MODULE": "llamero.settings",
        "PYTHONWARNINGS": "default",
        **extra,
    }


def wait_until(
    condition: Callable[[], object], *, what: str, seconds: float = PATIENCE_SECONDS
) -> None:
    """Return when the condition holds; fail naming what did not come true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.05)


def is_listening(port: int) -> bool:
    """Whether something accepts connections on the port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS).close()
    except OSError:
        return False
    return True


def processes_of(home: Path) -> list[psutil.Process]:
    """Give the living processes that were started for a home.

    Python's are known by their environment; the broker writes its title over that, with the path.
    """
    found = []
    for process in psutil.process_iter():
        try:
            is_its = process.environ().get("LLAMERO_HOME") == str(home) or any(
                "valkey" in word and str(home) in word for word in process.cmdline()
            )
            if is_its and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    return found
