"""A home of its own for each test that stores files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inference.gguf.examine import open_regular
from inference.gguf.recognise import FileFacts, recognise_file
from inference.gguf.verdict import GgufRejected
from models_registry.incoming import checking, receiving
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


@pytest.fixture
def quick_inspection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect uploads in this process: the one of its own has tests of its own."""
    for module in (receiving, checking):
        monkeypatch.setattr(module, "inspect_file", inspect_here)


def inspect_here(path: Path, size_bytes: int) -> FileFacts | None:
    """Say what a file is, in this process."""
    with open_regular(path) as fd:
        try:
            return recognise_file(fd, size_bytes)
        except GgufRejected as error:
            if error.code == "shrank" and path.stat().st_size < size_bytes:
                return None
            raise


@pytest.fixture(autouse=True)
def rooms(settings: Any) -> Iterator[list[Room]]:
    """The nodes that the registry is told of: none, unless a test adds some."""
    settings.NODE_ROOMS = "tests.models_registry.fake_rooms.list_fake_rooms"
    yield fake_rooms.rooms
    fake_rooms.rooms.clear()
