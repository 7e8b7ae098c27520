"""Run a command that ends when its parent does: ``python tether.py PARENT_PID COMMAND...``."""

import os
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
WATCH_SECONDS = 0.5


def main(parent: int, command: list[str]) -> None:
    """Become the command where the kernel does the watching, else watch beside it."""
    if sys.platform == "linux":
        become(parent, command)
    else:
        watch(parent, command)


def become(parent: int, command: list[str]) -> None:
    """Ask the kernel for SIGKILL when the parent dies; the wish survives exec."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It died before the wish was heard.
        sys.exit(1)
    os.execvp(command[0], command)


def watch(parent: int, command: list[str]) -> None:
    """Run the command as a child, hand signals down to it, and kill it when the parent is gone."""
    child = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: child.send_signal(number))
    while child.poll() is None:
        if os.getppid() != parent:
            child.kill()
        time.sleep(WATCH_SECONDS)
    sys.exit(child.returncode)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
