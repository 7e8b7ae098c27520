"""Passwords cannot be guessed fast, and nobody is shut out by somebody else's guessing."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from inference.relay.connect import SyncRedis, connect
from llamero.accounts import notices, passwords
from llamero.console import live
from llamero.limits import ledger
from tests.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db
DOORS = ("admin:login", "people:sign-in")


@pytest.fixture(autouse=True)
def redis(valkey_url: str, settings: Any) -> Iterator[SyncRedis]:
    """The real server, where nobody has tried anything yet."""
    settings.WRONG_PASSWORDS = 3
    with connect(valkey_url) as client:
        for pattern in ("lm:tried:*", "lm:known:*"):
            for key in client.keys(pattern):
                client.delete(key)
        yield client


@pytest.fixture(autouse=True)
def ada(redis: SyncRedis) -> User:
    return User.objects.create_user("ada", password="lovelace", is_staff=True)


def sign_in(name: str, password: str, address: str, door: str = DOORS[0]) -> str:
    """Try to, in a browser of one's own; give 'in', or what one is told."""
    client = Client(REMOTE_ADDR=address)
    answer = client.post(reverse(door), {"username": name, "password": password})
    if answer.status_code == 302:
        return "in"
    page = answer.content.decode()
    return "later" if "Please try again in 10 minutes" in page else "wrong"


@pytest.mark.parametrize("door", DOORS)
def test_an_address_that_guesses_is_told_to_wait_whoever_it_means(door: str) -> None:
    for name in ("ada", "nobody", "bob"):
        assert sign_in(name, "x", "192.0.2.1", door) == "wrong"
    assert sign_in("ada", "lovelace", "192.0.2.1", door) == "later"
    assert sign_in("nobody", "x", "192.0.2.1", door) == "later"
    assert sign_in("ada", "lovelace", "192.0.2.2", door) == "in"


@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_an_account_that_is_guessed_at_from_many_addresses_is_slowed(name: str) -> None:
    told = [sign_in(name, "x", f"192.0.2.{number}") for number in range(1, 6)]
    assert told == ["wrong"] * 3 + ["later"] * 2


def test_the_owner_gets_in_from_where_they_were_before() -> None:
    assert sign_in("ada", "lovelace", "198.51.100.7") == "in"
    for number in range(1, 9):
        sign_in("ada", "x", f"192.0.2.{number}")
    assert sign_in("ada", "lovelace", "192.0.2.99") == "later"
    for _ in range(5):
        assert sign_in("ada", "lovelace", "198.51.100.7") == "in"
    # There too nobody guesses for ever.
    assert [sign_in("ada", "x", "198.51.100.7") for _ in range(4)] == ["wrong"] * 3 + ["later"]


def test_signing_in_costs_no_tries(redis: SyncRedis) -> None:
    for number in range(5):
        User.objects.create_user(f"user{number}", password="right")
        assert sign_in(f"user{number}", "right", "192.0.2.1", "people:sign-in") == "in"
    assert sum(int(redis.get(key) or 0) for key in redis.keys("lm:tried:*")) == 0


def test_what_is_kept_of_tries_ends(redis: SyncRedis) -> None:
    sign_in("ada", "x", "192.0.2.1")
    sign_in("ada", "lovelace", "192.0.2.1")
    kept = redis.keys("lm:tried:*") + redis.keys("lm:known:*")
    assert len(kept) == 3
    assert all(redis.ttl(key) > 0 for key in kept)
    assert not [key for key in kept if b"ada" in key]


def test_where_nobody_can_count_passwords_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ConnectionError

    monkeypatch.setattr(passwords, "_client", fail)
    assert sign_in("ada", "lovelace", "192.0.2.1") == "in"
    assert [sign_in("ada", "x", "192.0.2.1") for _ in range(5)] == ["wrong"] * 5


@pytest.mark.parametrize("module", [passwords, ledger, notices, live])
def test_many_threads_at_once_can_all_ask_the_broker(module: Any) -> None:
    client, together = module._client(), Barrier(24)

    def ask(_: int) -> None:
        together.wait(PATIENCE_SECONDS)
        client.blpop("lm:none", 0.2)

    with ThreadPoolExecutor(24) as threads:
        list(threads.map(ask, range(24)))
