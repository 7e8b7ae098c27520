"""The home page's socket: numbers for staff who may see them, read once for all who look."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from llamero.console import consumer, pulse
from llamero.console.overview import Overview
from llamero.websocket_urls import websocket_application
from tests.llamero.streaming.socket_client import SocketClient
from tests.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)
OWN_ORIGIN = (b"origin", b"http://localhost")
Open = Callable[..., Awaitable[SocketClient]]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the looks; each gives another number of running sequences."""
    seen: list[int] = []

    def read(*_: Any) -> Overview:
        seen.append(len(seen))
        return Overview(total={"running": str(len(seen)), "slots": "16"})

    monkeypatch.setattr(pulse, "read_overview", read)
    monkeypatch.setattr(pulse, "PERIOD_SECONDS", 0.02)
    return seen


@pytest.fixture
async def open_socket() -> AsyncIterator[Open]:
    """Open sockets; all are closed at the end."""
    opened: list[SocketClient] = []

    async def opening(cookie: bytes, *headers: tuple[bytes, bytes]) -> SocketClient:
        given = [(b"host", b"localhost"), (b"cookie", cookie), *(headers or (OWN_ORIGIN,))]
        socket = SocketClient(websocket_application, "/ws/console/overview", given)
        opened.append(socket)
        return socket

    yield opening
    for socket in opened:
        await socket.disconnect()


def sign_in(client: Client, user: User) -> bytes:
    """Give the cookies of a browser that is signed in."""
    client.force_login(user)
    return "; ".join(f"{name}={one.value}" for name, one in client.cookies.items()).encode()


@pytest.fixture
def cookie(client: Client, transactional_db: None) -> bytes:
    return sign_in(client, User.objects.create_superuser("ada", password="x"))


async def test_only_changes_are_told(open_socket: Open, cookie: bytes, reads: list[int]) -> None:
    socket = await open_socket(cookie)
    assert (await socket.connect())[0]

    first = await socket.receive_json_from()
    second = await socket.receive_json_from()

    assert first["values"]["total.slots"] == "16"
    assert set(second["values"]) == {"total.running"}
    assert first["shape"] == second["shape"]


async def test_many_pages_cost_one_reader(
    open_socket: Open, cookie: bytes, reads: list[int]
) -> None:
    sockets = [await open_socket(cookie) for _ in range(5)]
    for socket in sockets:
        await socket.connect()
    frames = [await socket.receive_json_from() for socket in sockets]

    # Five readers would have looked five times for the first frames alone.
    assert all(frame["values"]["total.slots"] == "16" for frame in frames)
    assert len(pulse._pulses) >= 1
    assert pulse.get_pulse()._num_listeners == 5
    for socket in sockets:
        await socket.disconnect()
    num_reads = len(reads)
    await asyncio.sleep(0.1)
    # One look may have been under way.
    assert len(reads) <= num_reads + 1
    assert pulse.get_pulse()._reading is None


@pytest.mark.parametrize("origin", [b"https://evil.example", b"null", b"http://localhost:81"])
async def test_pages_elsewhere_get_nothing(
    open_socket: Open, cookie: bytes, reads: list[int], origin: bytes
) -> None:
    socket = await open_socket(cookie, (b"origin", origin))

    assert not (await socket.connect())[0]
    assert reads == []


@pytest.mark.parametrize("is_staff", [True, False])
async def test_who_may_not_see_it_gets_nothing(
    open_socket: Open, client: Client, reads: list[int], is_staff: bool
) -> None:
    make = sync_to_async(User.objects.create_user)
    user = await make("bob", password="x", is_staff=is_staff)
    socket = await open_socket(await sync_to_async(sign_in)(client, user))
    await socket.connect()

    event = await socket.receive_output()

    assert (event["type"], event["code"]) == ("websocket.close", consumer.NOT_FOR_YOU)
    assert reads == []


async def test_a_session_that_ends_ends_the_socket(
    open_socket: Open, cookie: bytes, reads: list[int], client: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr(consumer, "RECHECK_SECONDS", 0.0)
    socket = await open_socket(cookie)
    await socket.connect()
    await sync_to_async(client.logout)()

    async with asyncio.timeout(PATIENCE_SECONDS):
        while (event := await socket.receive_output())["type"] != "websocket.close":
            pass

    assert event["code"] == consumer.NOT_FOR_YOU
