"""How a child process makes sure that it never outlives its parent."""

import ctypes
import os
import signal
import sys
import threading
import time

PARENT_VARIABLE = "LLAMERO_PARENT_PID"
POLL_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1


def parent_environment() -> dict[str, str]:
    """Give the variable that ties a child, started with it, to this process."""
    return {PARENT_VARIABLE: str(os.getpid())}


def die_with_parent() -> None:
    """Be killed when the process that set ``parent_environment`` ends; do nothing without one.

    The kernel's signal is tied to the parent's *thread* that forked: start children from a thread
    that lives as long as the process. The poll covers systems without that signal.
    """
    expected = os.environ.get(PARENT_VARIABLE)
    if expected is None:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    parent = int(expected)
    if os.getppid() != parent:  # it died before the signal was set up
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), name="orphan-watch", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)
