"""What was known a moment ago: fresh for a while, and longer where nobody can be asked."""

from typing import Any

import pytest
from django.db import OperationalError

from llamero.api.errors import describe_exception
from llamero.expiring_cache import ExpiringCache


class Asked:
    """A clock, a database that can be down, and a cache in front of it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.value: str | None = "one"
        self.is_down = False
        self.num_reads = 0
        self.cache: ExpiringCache[str] = ExpiringCache(1.0, clock=lambda: self.now)

    def recall(self) -> str | None:
        """Ask the cache."""
        return self.cache.recall("key", self._read)

    def _read(self) -> str | None:
        self.num_reads += 1
        if self.is_down:
            raise OperationalError("unable to open database file")
        return self.value


@pytest.fixture
def asked(settings: Any) -> Asked:
    settings.OUTAGE_SECONDS = 60
    return Asked()


def test_it_is_read_once_a_lifetime(asked: Asked) -> None:
    assert [asked.recall(), asked.recall()] == ["one", "one"]
    assert asked.num_reads == 1
    asked.now, asked.value = 101.0, "two"
    assert asked.recall() == "two"


def test_what_is_gone_is_gone(asked: Asked) -> None:
    asked.recall()
    asked.now, asked.value = 101.0, None
    assert asked.recall() is None
    asked.is_down = True
    with pytest.raises(OperationalError):
        asked.recall()


def test_it_outlives_a_database_that_is_down(asked: Asked) -> None:
    asked.recall()
    asked.is_down = True
    for now in (101.0, 101.5, 130.0):
        asked.now = now
        assert asked.recall() == "one"
    assert asked.num_reads == 3, "a database that is down is asked once a lifetime"
    asked.now, asked.is_down, asked.value = 132.0, False, "two"
    assert asked.recall() == "two"


@pytest.mark.parametrize("seconds", [0, 60])
def test_it_does_not_outlive_it_for_ever(asked: Asked, settings: Any, seconds: float) -> None:
    settings.OUTAGE_SECONDS = seconds
    asked.recall()
    asked.is_down, asked.now = True, 102.0 + seconds
    with pytest.raises(OperationalError):
        asked.recall()


def test_who_is_not_known_is_asked_to_come_back() -> None:
    error = describe_exception(OperationalError("connection refused"))
    assert (error.status, error.code, error.retry_after) == (503, "database_unavailable", 2.0)
    assert "connection" not in error.message
