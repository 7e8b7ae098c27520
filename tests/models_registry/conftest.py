"""A home of its own for each test that stores files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models_registry.rooms import Room
from models_registry.services import adapters, importing
from tests.models_registry import fake_rooms


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
    monkeypatch.setattr(adapters, "probe_adapter", lambda paths, adapter: None)


@pytest.fixture(autouse=True)
def rooms(settings: Any) -> Iterator[list[Room]]:
    """The nodes that the registry is told of: none, unless a test adds some."""
    settings.NODE_ROOMS = "tests.models_registry.fake_rooms.list_fake_rooms"
    yield fake_rooms.rooms
    fake_rooms.rooms.clear()
