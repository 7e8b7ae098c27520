"""Bound what this process may use, before it reads anything from a stranger."""

import contextlib
import ctypes
import resource
import signal
import sys

GIB = 1024**3
_PR_SET_PDEATHSIG = 1


def limit_process(
    *, address_space_bytes: int | None, cpu_seconds: int, max_open_files: int
) -> None:
    """Set hard limits: memory, CPU time, open files; no file writes, no core dumps."""
    limits = {
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: max_open_files,
    }
    if address_space_bytes is not None:
        limits[resource.RLIMIT_AS] = address_space_bytes
    for kind, value in limits.items():
        # Some systems know fewer limits, or refuse values above their own.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value))


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends; elsewhere the limits must do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
