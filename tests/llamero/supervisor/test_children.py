"""Supervised processes: output, restarts, ends in time, and none that outlives its parent."""

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from llamero.supervisor import children, tether
from llamero.supervisor.children import Child, Part
from tests.processes import PATIENCE_SECONDS, wait_until

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP


def make_child(program: str, logs: Path, *, stop_seconds: float = 5.0) -> Child:
    part = Part("part", (sys.executable, "-c", program), stop_seconds)
    return Child(part, os.environ, logs)


def read_log(logs: Path) -> str:
    log = logs / "part.log"
    return log.read_text() if log.exists() else ""


def test_output_goes_to_terminal_and_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "LAST_WORDS_SECONDS", PATIENCE_SECONDS)
    child = make_child("print('hello')", tmp_path)
    child.start()
    wait_until(lambda: "hello" in read_log(tmp_path), what="a line in the log")
    wait_until(lambda: child.exit_code() == 0, what="the end of the child")
    child.stop()
    assert "part    | hello" in capsys.readouterr().out


def test_a_child_that_ended_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "FIRST_DELAY_SECONDS", 0.05)
    child = make_child(SLEEP, tmp_path)
    child.start()
    wait_until(lambda: "up" in read_log(tmp_path), what="the first start")
    child.kill()

    def is_up_again() -> bool:
        child.keep_alive()
        return read_log(tmp_path).count("up") == 2

    wait_until(is_up_again, what="a second start")
    child.kill()


def test_a_child_that_ignores_sigterm_is_killed_in_time(tmp_path: Path) -> None:
    child = make_child(DEAF, tmp_path, stop_seconds=0.2)
    child.start()
    wait_until(lambda: "up" in read_log(tmp_path), what="the start")
    child.stop()
    assert child.exit_code() == -signal.SIGKILL


def test_a_child_is_asked_to_stop_once(tmp_path: Path) -> None:
    counting = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(60)\n"
    )
    child = make_child(counting, tmp_path, stop_seconds=0.2)
    child.start()
    wait_until(lambda: "up" in read_log(tmp_path), what="the start")
    child.ask_to_stop()
    wait_until(lambda: "asked" in read_log(tmp_path), what="the signal")
    child.stop()
    assert read_log(tmp_path).count("asked") == 1


def parent_of_a_tethered_sleeper(kind: str, tmp_path: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a process that tethers a sleeper to itself; give both."""
    note = tmp_path / "pid"
    sleeper = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    program = (
        "import os, subprocess, sys; from llamero.supervisor import tether\n"
        f"if len(sys.argv) > 1: tether.{kind}(int(sys.argv[1]), "
        f"[sys.executable, '-c', {sleeper!r}])\n"
        "subprocess.run([sys.executable, __file__, str(os.getpid())])\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(program)
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, **_paths()})
    wait_until(lambda: note.exists() and note.read_text(), what="the sleeper")
    return parent, int(note.read_text())


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(tether.__file__).parents[2])}


@pytest.mark.parametrize("kind", ["become", "watch"])
def test_a_tethered_process_ends_with_its_parent(kind: str, tmp_path: Path) -> None:
    if kind == "become" and sys.platform != "linux":
        pytest.skip("only Linux tells a child of its parent's end")
    parent, sleeper = parent_of_a_tethered_sleeper(kind, tmp_path)
    assert psutil.pid_exists(sleeper)
    parent.kill()
    parent.wait()
    wait_until(lambda: not _lives(sleeper), what="the end of the tethered process")


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_restarts_wait_longer_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    child = make_child("raise SystemExit(3)", tmp_path)
    starts: list[float] = []
    monkeypatch.setattr(child, "exit_code", lambda: 3)
    monkeypatch.setattr(child, "start", lambda: _note_start(child, starts, clock[0]))
    for _ in range(400):
        clock[0] += 0.1
        child.keep_alive()
    gaps = [b - a for a, b in itertools.pairwise(starts)]
    assert gaps == sorted(gaps)
    assert gaps[-1] > 4 * gaps[0]


def _note_start(child: Child, starts: list[float], now: float) -> None:
    starts.append(now)
    child._due_at = None
