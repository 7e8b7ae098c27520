"""A database with all its tables, made once for all who need one: migrating takes seconds."""

import contextlib
import fcntl
import hashlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.processes import ROOT, child_environment

FOLDER = ROOT / ".cache" / "test-databases"
SOURCES = (
    "constraints.txt",
    "platform/llamero/**/migrations/*.py",
    "models_registry/**/migrations/*.py",
)
SECONDS = 240
KEPT_SECONDS = 24 * 3600


def migrated_database() -> Path:
    """Give the file of a database as a first start makes it; several processes may ask at once."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    target = FOLDER / f"{_fingerprint()}.sqlite3"
    with _alone():
        if not target.exists():
            _make(target)
            _remove_old()
    return target


def fill_home(home: Path) -> None:
    """Put the database into a home that has none."""
    shutil.copyfile(migrated_database(), home / "llamero.sqlite3")


def _make(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as home:
        subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity=0"],
            env=child_environment(LLAMERO_HOME=home),
            check=True,
            timeout=SECONDS,
        )
        made = Path(home) / "llamero.sqlite3"
        with contextlib.closing(sqlite3.connect(made)) as database:
            # One file, without a log of writes beside it.
            database.execute("PRAGMA journal_mode=DELETE")
        made.replace(target)


def _remove_old() -> None:
    for one in FOLDER.glob("*.sqlite3"):
        if time.time() - one.stat().st_mtime > KEPT_SECONDS:
            one.unlink()


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(str(path.relative_to(ROOT)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
