"""A home, two uploaders and a browser, and everything in the test's own thread."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from pytest_django.fixtures import Settings

from llamero.accounts import authentication
from llamero.accounts.callers import Caller
from llamero.accounts.scopes import Scope
from llamero.api import async_view
from llamero.api.model_imports import imports, uploads
from models_registry import tasks
from tests.llamero.api.conftest import KEY, LIMITED_KEY
from tests.llamero.api.model_imports.tus_client import TusClient
from tests.models_registry.conftest import quick_inspection, quick_probe

__all__ = ["quick_inspection", "quick_probe"]

MODELS_KEY = KEY.replace("abcdefgh", "modelsxx")
UPLOAD = frozenset({Scope.UPLOAD})
CALLERS = {
    KEY: Caller(None, 1, "key:1", scopes=UPLOAD),
    LIMITED_KEY: Caller(None, 2, "key:2", scopes=UPLOAD),
    MODELS_KEY: Caller(None, 3, "key:3", frozenset({999}), scopes=UPLOAD),
    "llm_readers": Caller(None, 4, "key:4"),
}


@pytest.fixture(autouse=True)
def home(db: None, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the test's files lie. Its database bears one thread."""
    settings.HOME = tmp_path
    settings.DISK_RESERVE_BYTES = 0

    async def run_here(call: Callable[[], Any], _threads: Any = None) -> Any:
        return await sync_to_async(call, thread_sensitive=True)()

    for module in (async_view, uploads, imports):
        monkeypatch.setattr(module, "run_in_thread", run_here)
    monkeypatch.setattr(authentication, "find_caller", CALLERS.get)
    return tmp_path


@pytest.fixture(autouse=True)
def work_at_once(monkeypatch: pytest.MonkeyPatch, quick_inspection: None) -> list[str]:
    """Run the control worker's part within the request; gives what was to be fetched."""
    fetched: list[str] = []
    monkeypatch.setattr(tasks, "ask_for_check", tasks.check_upload_task)
    monkeypatch.setattr(imports, "ask_for_fetch", fetched.append)
    return fetched


@pytest.fixture
def tus() -> TusClient:
    """A program with a key."""
    return TusClient(Client(), KEY)
