"""What a replica's log tells at each level."""

import subprocess
import sys

import pytest

from tests.processes import child_environment

SCRIPT = """
import logging, sys
from inference.worker.__main__ import start_log
start_log(sys.argv[1])
for name in ("inference.worker.slots", "celery.worker", "inference.backend.native"):
    print(logging.getLevelName(logging.getLogger(name).getEffectiveLevel()))
"""


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("DEBUG", ["DEBUG", "DEBUG", "DEBUG"]),
        ("INFO", ["INFO", "WARNING", "WARNING"]),
        ("ERROR", ["ERROR", "ERROR", "ERROR"]),
    ],
)
def test_libraries_chatter_only_where_all_is_told(level: str, expected: list[str]) -> None:
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, level],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == expected
