"""A home, keys and models of the test's own."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from llamero.api import threads
from tests.llamero.api.responses.conftest import rows

__all__ = ["rows"]


@pytest.fixture(autouse=True)
def home(rows: None, settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """Where the test's files lie. Its database, in memory, bears one user at a time."""
    settings.HOME = tmp_path
    with ThreadPoolExecutor(max_workers=1) as one, pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_threads", one)
        yield tmp_path
