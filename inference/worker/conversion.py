"""Weights in a type that this machine computes faster with: converted once, kept, used again."""

import fcntl
import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from inference.gguf.build import engine_build
from inference.node.orphan import parent_environment
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import FAKE_PREFIX, ReplicaSpec

logger = logging.getLogger(__name__)
# A converted file that no replica was started with for so long is dropped.
KEEP_SECONDS = 7 * 86_400
MAX_REASON_CHARS = 300


def needs_conversion(spec: ReplicaSpec) -> bool:
    """Tell whether a replica wants its weights in another type than the file's."""
    return bool(spec.profile.weight_type) and not spec.files[0].startswith(FAKE_PREFIX)


def convert_weights(spec: ReplicaSpec, home: Path) -> ReplicaSpec:
    """Give the spec with a file of the wanted type, made under ``home`` where it is not there yet.

    To be called with verified files, which stay as they are. One conversion runs on a machine at
    a time: each takes all cores. Raises EngineError where the file cannot be made.
    """
    folder = home / "converted"
    target = folder / f"{_recipe(spec)}.gguf"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _lock(folder / "lock"):
            _drop_unused(folder, target)
            if not target.exists():
                _convert(spec, target)
            os.utime(target)
    except OSError as error:
        raise _refuse(spec, f"{target.parent} cannot be used ({error.strerror})") from error
    return msgspec.structs.replace(spec, files=(str(target),), sha256=())


def _recipe(spec: ReplicaSpec) -> str:
    """Name what a converted file is made of and by."""
    hashes = [sha256 or name for name, sha256 in spec.hashed_files[: len(spec.files)]]
    text = " ".join([*hashes, spec.profile.weight_type, engine_build()])
    return hashlib.sha256(text.encode()).hexdigest()


def _convert(spec: ReplicaSpec, target: Path) -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as names:
        source = _name_shards(spec.files, Path(names))
        command = [sys.executable, "-m", "inference.worker.convert"]
        done = subprocess.run(
            [*command, spec.profile.weight_type, str(target), str(source)],
            env=os.environ | parent_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"]
        raise _refuse(spec, lines[-1][:MAX_REASON_CHARS])
    seconds = time.monotonic() - started
    logger.info("weights converted to %s in %.1f s", spec.profile.weight_type, seconds)


def _name_shards(files: tuple[str, ...], folder: Path) -> Path:
    """Give the files, wherever they lie, the names by which llama.cpp finds shards."""
    links = [
        folder / f"model-{number:05}-of-{len(files):05}.gguf" for number in range(1, len(files) + 1)
    ]
    for link, file in zip(links, files, strict=True):
        link.symlink_to(Path(file).resolve())
    return links[0]


def _drop_unused(folder: Path, wanted: Path) -> None:
    """Remove what was not asked for of late, and what was left unfinished.

    What a replica has open stays until it ends.
    """
    oldest = time.time() - KEEP_SECONDS
    for path in folder.glob("*.gguf"):
        if path != wanted and path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
            logger.info("dropped converted file %s", path.name[:12])
    for path in folder.glob("*.partial"):
        path.unlink(missing_ok=True)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock among the processes of this machine; it ends with the process at the latest."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _refuse(spec: ReplicaSpec, problem: str) -> EngineError:
    return EngineError(
        ErrorCode.ENGINE_FAILED,
        f"The weights could not be converted to {spec.profile.weight_type}: {problem}.",
    )
