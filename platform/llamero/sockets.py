"""Where the embedded Redis-protocol server listens."""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

# Linux takes 107 bytes of socket path, macOS 103.
MAX_SOCKET_PATH_BYTES = 100


def valkey_socket(home: Path) -> Path:
    """Give the socket path that belongs to a home; a long home gets a short folder of its own."""
    path = home / "run" / "valkey.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"llamero-{os.getuid()}-{digest}" / "valkey.sock"


def make_private_folder(folder: Path) -> None:
    """Make a folder that only this user can enter, and refuse one that somebody else prepared."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not a folder of this user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)
