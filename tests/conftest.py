"""What tests share: a broker, real and tiny models, and a whole running Llamero."""

import contextlib
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from pytest_django import DjangoDbBlocker

from llamero.accounts.selectors import recent_callers
from llamero.accounts.tokens import proving
from llamero.accounts.tokens.issuers import recent_issuers
from llamero.api import model_choice
from llamero.console import history
from llamero.control import live_nodes, node_tokens
from llamero.expiring_cache import ExpiringCache
from llamero.limits.selectors import recent_limits
from llamero.sockets import valkey_socket
from llamero.supervisor.home import Home
from llamero.supervisor.parts import valkey_part
from tests.databases import migrated_database
from tests.inference.relay.broker import Broker
from tests.live import LiveLlamero, running_llamero
from tests.models import fetch_minilm, fetch_smollm2
from tests.processes import PATIENCE_SECONDS, wait_until
from tests.tiny_model import write_tiny_model

CACHES: tuple[ExpiringCache[Any], ...] = (
    history._recent,
    live_nodes._recent,
    model_choice.recent_lists,
    model_choice.recent_models,
    node_tokens.recent_tokens,
    proving.recent_tokens,
    recent_callers,
    recent_issuers,
    recent_limits,
)
# As in a replica: native threads that spin slow each other down where cores are shared.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")


@pytest.fixture(autouse=True)
def forget_what_was_looked_up() -> None:
    """Rows of other tests had the same ids a moment ago."""
    for cache in CACHES:
        cache.clear()


@pytest.fixture(scope="session")
def django_db_use_migrations() -> bool:
    """Tests need what migrations make, but not made anew where it can be copied."""
    return connection.vendor != "sqlite"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Have the tests' database be as migrations leave it."""
    if connection.vendor != "sqlite":
        return
    made = migrated_database()
    with django_db_blocker.unblock(), contextlib.closing(sqlite3.connect(made)) as migrated:
        connection.ensure_connection()
        migrated.backup(connection.connection)
        # Roles and rights as the code has them now.
        emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """A Redis-protocol server of this test run, at the address that the settings have."""
    home = Home(settings.HOME)
    home.prepare()
    process = subprocess.Popen(valkey_part(home).command)
    socket = valkey_socket(settings.HOME)
    try:
        wait_until(socket.exists, what="the broker's socket")
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A server of the module's own, which its tests may stop, pause and kill."""
    with tempfile.TemporaryDirectory(prefix="broker") as folder:
        server = Broker(Path(folder))
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="session")
def tiny_model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama model of half a megabyte with random weights, the same in each run."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    write_tiny_model(path)
    return path


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct: a real chat model, 98 MB."""
    return fetch_smollm2()


@pytest.fixture(scope="session")
def minilm_path() -> Path:
    """all-MiniLM-L6-v2: a real embedding model, 46 MB."""
    return fetch_minilm()


@pytest.fixture(scope="session")
def live_llamero(
    smollm2_path: Path, minilm_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveLlamero]:
    """A whole Llamero with both models on a port of its own, for all tests that need one."""
    home = tmp_path_factory.mktemp("live")
    with running_llamero(home, chat=smollm2_path, embedding=minilm_path) as live:
        yield live
