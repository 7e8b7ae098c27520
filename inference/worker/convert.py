"""The process that converts weights: ``python -m inference.worker.convert TYPE TARGET FIRST_FILE``.

Nothing is left of a target that could not be completed.
"""

import os
import resource
import sys
from pathlib import Path

from inference.backend.convert import write_converted
from inference.node.orphan import die_with_parent

# What is left to others of the disk.
RESERVED_BYTES = 1 << 30


def main(arguments: list[str]) -> int:
    """Convert; gives the exit status, and says on standard error what went wrong."""
    die_with_parent()
    weight_type, target, source = arguments
    partial = Path(f"{target}.{os.getpid()}.partial")
    room = _limit_size(partial.parent)
    if room < Path(source).stat().st_size:
        sys.stderr.write(f"only {room >> 20} MiB of the disk are free for it\n")
        return 1
    try:
        if problem := write_converted(source, str(partial), weight_type):
            sys.stderr.write(f"{problem}\n")
            return 1
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return 0


def _limit_size(folder: Path) -> int:
    """Let a write fail, rather than fill the disk that others need; gives the bytes there are."""
    disk = os.statvfs(folder)
    room = max(0, disk.f_bavail * disk.f_frsize - RESERVED_BYTES)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    return room


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
