"""A home of its own for each test that stores files."""

from pathlib import Path
from typing import Any

import pytest

from models_registry.services import importing


@pytest.fixture
def home(tmp_path: Path, settings: Any) -> Path:
    """An empty home whose import folder exists."""
    settings.HOME = tmp_path / "home"
    settings.IMPORT_DIRS = [tmp_path / "import"]
    (tmp_path / "home").mkdir()
    (tmp_path / "import").mkdir()
    return tmp_path / "home"


@pytest.fixture
def quick_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the native probe, which has tests of its own."""
    monkeypatch.setattr(importing, "probe_files", lambda paths: None)
