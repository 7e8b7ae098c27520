"""The project's settings in a home of the test run's own, with quick password hashes."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_home = Path(tempfile.mkdtemp(prefix="llamero-test-"))
_owner = os.getpid()


def _remove_home() -> None:
    """Leave nothing behind; a forked child leaves that to its parent."""
    if os.getpid() == _owner:
        shutil.rmtree(_home, ignore_errors=True)


atexit.register(_remove_home)
# The machine's own settings, if any, are not the tests'.
for _name in [name for name in os.environ if name.startswith("LLAMERO_")]:
    if not _name.startswith("LLAMERO_TEST_"):
        del os.environ[_name]
os.environ["LLAMERO_HOME"] = str(_home)
# Another database than SQLite: see tests/postgresql.py.
if "LLAMERO_TEST_DATABASE_URL" in os.environ:
    os.environ["LLAMERO_DATABASE_URL"] = os.environ["LLAMERO_TEST_DATABASE_URL"]

from llamero.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Tests of other things sign in from one address, before one server.
WRONG_PASSWORDS = 0
