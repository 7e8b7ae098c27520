"""Are the model files on this host the ones that were registered?"""

import hashlib
import json
import logging
from pathlib import Path

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import ReplicaSpec

logger = logging.getLogger(__name__)
_CHUNK_BYTES = 4 << 20


class BadFileError(EngineError):
    """A file is not the one that was registered under ``sha256``."""

    def __init__(self, path: Path, sha256: str) -> None:
        problem = "is not the registered file: its SHA-256 differs"
        super().__init__(ErrorCode.ENGINE_FAILED, f"The model file {path.name} {problem}.")
        self.sha256 = sha256


def verify_files(spec: ReplicaSpec, home: Path) -> None:
    """Check every file's hash, once per host and file; raises EngineError naming a bad one.

    That is the model's files, its draft's, and its adapters'. A stamp of inode, size and time
    under ``home`` tells that a file was checked before.
    """
    for name, sha256 in spec.hashed_files:
        _verify_file(Path(name), sha256, home / "verified")


def _verify_file(path: Path, sha256: str, stamps: Path) -> None:
    try:
        status = path.stat()
        if not sha256:
            return
        identity = [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
        stamp = stamps / f"{sha256}.json"
        if _read_stamp(stamp) == identity:
            return
        actual = _hash_file(path)
    except OSError as error:
        raise _refuse(path, f"cannot be read ({error.strerror})") from error
    if actual != sha256:
        raise BadFileError(path, sha256)
    try:
        stamps.mkdir(parents=True, exist_ok=True)
        stamp.write_text(json.dumps(identity))
    except OSError as error:
        logger.warning("the file will be hashed again next time: %s", error)


def _read_stamp(stamp: Path) -> object:
    try:
        return json.loads(stamp.read_text())
    except (OSError, ValueError):
        return None


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _refuse(path: Path, problem: str) -> EngineError:
    return EngineError(ErrorCode.ENGINE_FAILED, f"The model file {path.name} {problem}.")
