"""The broker of the test run, with an empty stream of records."""

from collections.abc import Iterator

import pytest

from inference.relay.connect import SyncRedis, connect
from inference.relay.keys import USAGE


@pytest.fixture
def redis(valkey_url: str) -> Iterator[SyncRedis]:
    """A client of the real server."""
    with connect(valkey_url) as client:
        client.delete(USAGE)
        yield client
        client.delete(USAGE)
