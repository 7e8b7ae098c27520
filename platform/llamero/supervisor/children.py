"""One supervised process: started, watched, restarted with patience, stopped in time."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llamero.supervisor.output import close_log, open_log, pump, say

TETHER = str(Path(__file__).with_name("tether.py"))
FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 30.0
# A child that lived this long starts again with the first delay.
STEADY_SECONDS = 60.0
# How long the last lines of a dead child are waited for.
LAST_WORDS_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Part:
    """What a child runs, how long it may take to end, and whether the terminal shows its lines."""

    name: str
    command: tuple[str, ...]
    stop_seconds: float
    is_shown: bool = True


class Child:
    """A part's process. Call everything from the main thread: the kernel ties a child to it."""

    def __init__(self, part: Part, environment: Mapping[str, str], logs: Path) -> None:
        self.part = part
        self._environment = dict(environment)
        self._log: logging.Logger = open_log(logs, part.name)
        self._process: subprocess.Popen[bytes] | None = None
        self._output: threading.Thread | None = None
        self._started_at = 0.0
        self._delay = FIRST_DELAY_SECONDS
        self._due_at: float | None = None
        self._is_asked = False

    def start(self) -> None:
        """Start the process, in its own session so that Ctrl-C reaches us alone."""
        tethered = (sys.executable, "-S", "-E", TETHER, str(os.getpid()), *self.part.command)
        self._process = subprocess.Popen(
            tethered,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._started_at = time.monotonic()
        self._due_at = None
        self._is_asked = False
        assert self._process.stdout is not None
        self._output = pump(
            self._process.stdout, self.part.name, self._log, is_shown=self.part.is_shown
        )

    def exit_code(self) -> int | None:
        """Give how the process ended, None while it runs or before it was started."""
        return self._process.poll() if self._process is not None else None

    def keep_alive(self) -> None:
        """Restart a process that ended, each time in a row after a longer pause."""
        code = self.exit_code()
        if code is None:
            return
        now = time.monotonic()
        if self._due_at is None:
            if now - self._started_at > STEADY_SECONDS:
                self._delay = FIRST_DELAY_SECONDS
            say(f"{self.part.name} ended with {code}; starting it again in {self._delay:.0f} s")
            self._due_at = now + self._delay
            self._delay = min(self._delay * 2, LONGEST_DELAY_SECONDS)
        elif now >= self._due_at:
            self.start()

    def ask_to_stop(self) -> None:
        """Ask the process to end, once: to some programs a second signal means at once."""
        if self._process is None or self._is_asked:
            return
        self._is_asked = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Ask the process to end, and kill it with its group when it takes too long."""
        if self._process is None:
            return
        self.ask_to_stop()
        try:
            self._process.wait(self.part.stop_seconds)
        except subprocess.TimeoutExpired:
            say(f"{self.part.name} did not end in {self.part.stop_seconds:.0f} s; killing it")
        self.kill()

    def kill(self) -> None:
        """End the process and what is left of its group at once."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Take the last words of a process that has ended."""
        if self._output is not None:
            self._output.join(LAST_WORDS_SECONDS)
        close_log(self._log)
