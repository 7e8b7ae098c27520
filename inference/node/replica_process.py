"""One replica as a child process of the agent: started, listened to, stopped."""

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import IO

import msgspec

import inference
from inference.node.log_tail import MAX_LINES, end_of_log, last_complaint
from inference.node.orphan import parent_environment
from inference.protocol.draining import DRAIN_VARIABLE
from inference.protocol.replicas import ReplicaSpec

SPEC_VARIABLE = "LLAMERO_REPLICA_SPEC"
FAILURES_VARIABLE = "LLAMERO_REPLICA_FAILURES"
# A replica parses untrusted files and text: it gets no secret of the machine it runs on.
PASSED_VARIABLES = frozenset(
    {
        "LLAMERO_REDIS_URL",
        "LLAMERO_HOME",
        DRAIN_VARIABLE,
        "LLAMERO_LOG_LEVEL",
        "LLAMERO_SAMPLER_PLUGINS",
    }
)
MAX_REASON_CHARS = 300
_ROOT = Path(inference.__file__).parents[1]


class ReplicaProcess:
    """A running replica. Create it from the agent's main thread: see ``orphan``."""

    def __init__(self, spec: ReplicaSpec, node: str, num_failures: int = 0) -> None:
        self.spec = spec
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inference.worker"],
            env=replica_environment(spec, node) | {FAILURES_VARIABLE: str(num_failures)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a terminal's Ctrl-C must not skip the agent's orderly stop
            text=True,
            errors="replace",
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(
            target=self._pass_on, args=(self._process.stdout,), name=spec.replica, daemon=True
        )
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """Give the exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def ask_to_stop(self) -> None:
        """Send SIGTERM: the replica drains and ends. Safe in a signal handler."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process now and wait for it."""
        self._process.kill()
        self._process.wait()

    def describe_exit(self) -> str:
        """Say in one line how the process ended and what it complained of at the end."""
        self._reader.join(timeout=1.0)
        code = self._process.returncode
        how = f"killed by {_signal_name(-code)}" if code < 0 else f"exit code {code}"
        last = last_complaint(tuple(self._lines))
        return f"{how}: {last}"[:MAX_REASON_CHARS] if last else how

    def last_lines(self) -> tuple[str, ...]:
        """Give the end of what a process that ended has said, as it may be shown."""
        return end_of_log(tuple(self._lines))

    def _pass_on(self, output: IO[str]) -> None:
        with output:
            for line in output:
                self._lines.append(line)
                sys.stdout.write(f"[{self.spec.replica}] {line}")
                sys.stdout.flush()


def replica_environment(spec: ReplicaSpec, node: str) -> dict[str, str]:
    """Build a replica's environment: the agent's without its secrets, and the spec."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_VARIABLES or not name.startswith(("LLAMERO_", "DJANGO_", "DATABASE_"))
    }
    path = os.pathsep.join(filter(None, (str(_ROOT), kept.get("PYTHONPATH"))))
    return (
        kept
        | parent_environment()
        | {
            SPEC_VARIABLE: msgspec.json.encode(spec).decode(),
            "LLAMERO_NODE": node,
            "PYTHONPATH": path,
            "PYTHONUNBUFFERED": "1",
        }
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
