"""Replicas that come, go, change and move under a whole Llamero's clients."""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.protocol.replicas import ReplicaState, ReplicaStatus
from inference.relay.connect import connect
from inference.relay.registry import ReplicaRegistry
from tests.live import LiveLlamero, manage, prepare, start, stop, wait_until_ready
from tests.processes import (
    PATIENCE_SECONDS,
    ROOT,
    child_environment,
    find_free_port,
    processes_of,
    wait_until,
)

MODEL = "tiny"
PROFILE = {"context_length": 256, "num_slots": 2}
CHANGE = "from models_registry.models import Deployment as D; D.objects.update({})"
SCHEDULE = "from llamero.control.models import Node; Node.objects.{}.update(scheduling={!r})"


@pytest.fixture(scope="module")
def live(tiny_model_path: Path) -> Iterator[LiveLlamero]:
    home = Path(tempfile.mkdtemp(prefix="llamero-move-"))
    prepare(home, (tiny_model_path, MODEL, PROFILE))
    live = start(home, find_free_port())
    try:
        wait_until_ready(live)
        yield live
    finally:
        stop(live)
        for process in processes_of(home):
            process.kill()
        shutil.rmtree(home)


def change(live: LiveLlamero, program: str) -> None:
    manage(live.home, "shell", "--verbosity=0", "-c", program)


def replicas(live: LiveLlamero) -> list[ReplicaStatus]:
    with connect(live.redis_url) as redis:
        found = ReplicaRegistry(redis).list()
    return [status for status in found if status.state is ReplicaState.READY]


def complete(live: LiveLlamero, *, stream: bool = False) -> bytes:
    body = {"model": MODEL, "prompt": "Hello", "max_tokens": 24, "stream": stream}
    request = urllib.request.Request(
        f"{live.base_url}/v1/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {live.api_key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        return bytes(answer.read())


class Clients:
    """A few clients that ask again and again, and note what goes wrong."""

    def __init__(self, live: LiveLlamero) -> None:
        self.num_answers = 0
        self.failures: list[str] = []
        self._live = live
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(3)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        while not self._is_over.is_set():
            try:
                answer = complete(self._live, stream=number % 2 == 0)
                if b'"error"' in answer:
                    self.failures.append(answer.decode())
                self.num_answers += 1
            except urllib.error.HTTPError as error:
                self.failures.append(error.read().decode())
            except OSError as error:
                self.failures.append(str(error))
            self._is_over.wait(0.05)


def test_a_changed_deployment_is_replaced_without_a_failed_request(live: LiveLlamero) -> None:
    (before,) = replicas(live)
    with Clients(live) as clients:
        change(live, CHANGE.format("generation=2"))
        wait_until(
            lambda: [one.generation for one in replicas(live)] == [2],
            what="a replica of the new generation, alone",
        )
        num_before = clients.num_answers
        wait_until(lambda: clients.num_answers > num_before + 5, what="more answers")
    assert clients.failures == []
    (after,) = replicas(live)
    assert after.replica != before.replica


def test_an_idle_deployment_sleeps_and_a_request_wakes_it(live: LiveLlamero) -> None:
    change(live, CHANGE.format("min_replicas=0, idle_timeout_seconds=1"))
    wait_until(lambda: not replicas(live), what="no replica")
    # Which only a replica can give.
    assert b'"choices"' in complete(live)
    wait_until(lambda: not replicas(live), what="no replica again")
    answer = complete(live, stream=True)
    assert b"[DONE]" in answer
    assert b'"error"' not in answer
    change(live, CHANGE.format("min_replicas=1"))
    wait_until(lambda: replicas(live), what="a replica")


def can_hide_folders() -> bool:
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not can_hide_folders(), reason="may not hide folders from a process")
def test_a_drained_node_hands_over_to_one_that_has_no_files(
    live: LiveLlamero, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    manage(live.home, "create_node_token", "worker")
    token = capfd.readouterr().out.strip()
    hide = f"mount -t tmpfs none {live.home}/models && exec {sys.executable} -m inference.node"
    worker = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", hide],
        cwd=ROOT,
        env=child_environment(
            LLAMERO_HOME=str(tmp_path),
            LLAMERO_REDIS_URL=live.redis_url,
            LLAMERO_NODE="worker",
            LLAMERO_CONTROL_URL=live.base_url,
            LLAMERO_NODE_TOKEN=token,
        ),
    )
    try:
        with Clients(live) as clients:
            change(live, SCHEDULE.format("exclude(name='worker')", "draining"))
            wait_until(
                lambda: [one.node for one in replicas(live)] == ["worker"],
                what="the replica on the worker",
            )
            num_before = clients.num_answers
            wait_until(lambda: clients.num_answers > num_before, what="an answer")
            (fetched,) = (tmp_path / "fetched").glob("*/*")
            assert len(fetched.name) == 64
            change(live, SCHEDULE.format("all()", "open"))
        assert clients.failures == []
    finally:
        worker.terminate()
        worker.wait(PATIENCE_SECONDS)
    # Signed off in good order: the other node takes over, and requests wait until it has.
    assert b'"choices"' in complete(live)
