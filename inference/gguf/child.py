"""Run the inspector and the probe as processes of their own, and read their verdict."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from inference.gguf.verdict import GgufRejected

MAX_OUTPUT_BYTES = 1024 * 1024
_ROOT = Path(__file__).resolve().parent.parent.parent
# -I ignores the environment and the working folder, so the child is told where our code lies.
_BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from runpy import run_module; run_module(sys.argv.pop(1), run_name='__main__')"
)
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "", "MALLOC_ARENA_MAX": "1"}


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a child says in one line of JSON: accepted, with facts, or rejected, with the cause."""

    verdict: str
    code: str = ""
    reason: str = ""
    byte_offset: int | None = None
    facts: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the examination: which module runs, for how long, and what its death means."""

    module: str
    wall_seconds: float
    crash_code: str


INSPECTION = Stage("inference.gguf.inspect", 60.0, "inspector_crashed")
ADAPTER_INSPECTION = Stage("inference.gguf.inspect_adapter", 60.0, "inspector_crashed")
FILE_INSPECTION = Stage("inference.gguf.inspect_file", 60.0, "inspector_crashed")
TEMPLATE_READING = Stage("inference.gguf.inspect_template", 20.0, "inspector_crashed")
PROBE = Stage("inference.gguf.probe", 120.0, "probe_crashed")
# Behind the files of a probe: the last of them is an adapter.
WITH_ADAPTER = "with-adapter"


def run_stage(stage: Stage, descriptors: Sequence[int], *more: str) -> bytes:
    """Run a stage over open files (first shard first); give its facts as JSON.

    ``more`` are arguments behind the files.
    Raises GgufRejected with the child's verdict, or with the stage's crash code if it died.
    """
    command = [sys.executable, "-I", "-c", _BOOTSTRAP, str(_ROOT), stage.module]
    process = subprocess.Popen(
        [*command, *map(str, descriptors), *more],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_ENVIRONMENT,
        cwd="/",
        pass_fds=tuple(descriptors),
    )
    is_late = threading.Event()

    def kill_late() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(stage.wall_seconds, kill_late)
    timer.start()
    try:
        assert process.stdout is not None
        with process.stdout as pipe:
            output = pipe.read(MAX_OUTPUT_BYTES + 1)
        if len(output) > MAX_OUTPUT_BYTES:
            process.kill()
        status = process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    if is_late.is_set():
        raise GgufRejected(stage.crash_code, f"Took longer than {stage.wall_seconds:.0f} seconds.")
    return _read_verdict(stage, status, output)


def _read_verdict(stage: Stage, status: int, output: bytes) -> bytes:
    if status < 0:
        name = signal.Signals(-status).name
        raise GgufRejected(stage.crash_code, f"The process that read the file died of {name}.")
    try:
        verdict = msgspec.json.decode(output, type=Verdict)
    except msgspec.DecodeError as error:
        reason = f"The process that read the file gave no verdict (status {status})."
        raise GgufRejected(stage.crash_code, reason) from error
    if verdict.verdict != "ok":
        raise GgufRejected(verdict.code, verdict.reason, verdict.byte_offset)
    return bytes(verdict.facts)


def answer(verdict: Verdict) -> int:
    """In a child: write the verdict; give the exit status that goes with it."""
    os.write(1, msgspec.json.encode(verdict))
    return 0 if verdict.verdict == "ok" else 1
