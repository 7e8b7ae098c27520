"""Starting, stopping and dying: of a whole Llamero with a tiny model."""

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.live import READY_SECONDS, LiveLlamero, prepare, start, stop, wait_until_ready
from tests.processes import (
    PATIENCE_SECONDS,
    ROOT,
    child_environment,
    find_free_port,
    is_listening,
    processes_of,
    wait_until,
)

MODEL = "tiny"
PROFILE = {"context_length": 256, "num_slots": 2}


@pytest.fixture(scope="module")
def home(tiny_model_path: Path) -> Iterator[Path]:
    """A home with a tiny model, in a short path."""
    folder = Path(tempfile.mkdtemp(prefix="llamero-life-"))
    prepare(folder, (tiny_model_path, MODEL, PROFILE))
    yield folder
    for process in processes_of(folder):
        process.kill()
    shutil.rmtree(folder)


@contextlib.contextmanager
def running(home: Path) -> Iterator[LiveLlamero]:
    """Start, wait until all is ready, and end what then still runs."""
    (home / "up.log").unlink(missing_ok=True)
    live = start(home, find_free_port())
    try:
        wait_until_ready(live)
        yield live
    finally:
        stop(live)


def count_models(live: LiveLlamero) -> int:
    """Ask the API with the demo key."""
    request = urllib.request.Request(
        live.base_url + "/v1/models", headers={"Authorization": f"Bearer {live.api_key}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        return int(answer.read().count(b'"object":"model"'))


def test_sigterm_ends_every_child_and_a_second_start_keeps_all_state(home: Path) -> None:
    with running(home) as live:
        password, key = live.admin_password, live.api_key
        assert count_models(live) == 1
        assert password not in live.log
        assert key not in live.log
        for name in ("admin-password", "demo-api-key", "secret-key"):
            assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
        assert stop(live) == 0
        assert processes_of(home) == []

    with running(home) as again:
        assert (again.admin_password, again.api_key) == (password, key)
        assert count_models(again) == 1


def web_servers(home: Path) -> list[psutil.Process]:
    """Give the living web servers of a home."""
    return [one for one in processes_of(home) if "serve" in one.cmdline()]


def test_a_part_that_dies_is_started_again(home: Path) -> None:
    with running(home) as live:
        (web,) = web_servers(home)
        web.kill()
        wait_until(lambda: web_servers(home) not in ([], [web]), what="a new web server")
        wait_until(lambda: is_listening(live.port), what="that it listens")
        assert count_models(live) == 1


def test_a_killed_supervisor_leaves_no_orphan(home: Path) -> None:
    with running(home) as live:
        # Supervisor, broker, web, control, node, one replica.
        assert len(processes_of(home)) >= 6
        live.process.kill()
        live.process.wait()
        wait_until(lambda: not processes_of(home), what="the end of all children")
        wait_until(lambda: not is_listening(live.port), what="a free port")


def run_up(home: Path, port: int) -> subprocess.CompletedProcess[str]:
    """Run it where it cannot start."""
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(port)],
        env=child_environment(LLAMERO_HOME=str(home)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
        check=False,
    )


def test_a_taken_port_is_named_with_its_cure(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_up(tmp_path, port)
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 is taken" in done.stdout
    assert f"PORT={port + 1}" in done.stdout
    assert processes_of(tmp_path) == []


def test_interrupting_the_start_ends_it(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(find_free_port())],
        env=child_environment(LLAMERO_HOME=str(tmp_path), LLAMERO_DEMO_MODELS="false"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout as output:
        assert b"starting" in output.readline()
        os.kill(process.pid, signal.SIGINT)
        output.read()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert processes_of(tmp_path) == []
