"""A served model, a member of the staff, and a data plane that does as it is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from llamero import dispatch
from llamero.accounts.services import IssuedKey, issue_api_key
from llamero.websocket_urls import websocket_application
from models_registry.models import Deployment, Model, ModelVersion
from tests.llamero.streaming.fakes import FakeDispatcher
from tests.llamero.streaming.socket_client import SocketClient
from tests.processes import PATIENCE_SECONDS

Connect = Callable[..., Awaitable[SocketClient]]
OWN_ORIGIN = (b"origin", b"http://localhost")


@pytest.fixture
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> FakeDispatcher:
    """The data plane."""
    fake = FakeDispatcher()
    monkeypatch.setattr(dispatch, "get_dispatcher", lambda: fake)
    return fake


@pytest.fixture
def served(transactional_db: None) -> Deployment:
    """A chat model that is ready."""
    model = Model.objects.create(slug="smol", title="Smol", kind="chat")
    ModelVersion.objects.create(model=model, number=1, state="ready", is_current=True)
    return Deployment.objects.create(slug="smol", model=model, state="ready")


@pytest.fixture
def staff(transactional_db: None) -> User:
    """Someone who may use the playground."""
    return User.objects.create_user("sam", password="x", is_staff=True)


@pytest.fixture
def issued(staff: User) -> IssuedKey:
    """An API key."""
    return issue_api_key(user=staff, name="test")


@pytest.fixture
def session_cookie(staff: User, client: Client) -> bytes:
    """The cookie header of a signed-in browser."""
    client.force_login(staff)
    return "; ".join(f"{name}={cookie.value}" for name, cookie in client.cookies.items()).encode()


@pytest.fixture
async def connect(served: Deployment, dispatcher: FakeDispatcher) -> AsyncIterator[Connect]:
    """Open sockets; all are closed at the end."""
    opened: list[SocketClient] = []

    async def open_socket(
        *headers: tuple[bytes, bytes],
        path: str = "/ws/v1/chat",
        subprotocols: list[str] | None = None,
        host: bytes = b"localhost",
    ) -> SocketClient:
        socket = SocketClient(
            websocket_application, path, [(b"host", host), *headers], subprotocols
        )
        opened.append(socket)
        return socket

    yield open_socket
    for socket in opened:
        await socket.disconnect()


@pytest.fixture
async def socket(connect: Connect, issued: IssuedKey) -> SocketClient:
    """A socket whose caller is known, past its hello."""
    opened = await connect((b"authorization", f"Bearer {issued.secret_text}".encode()))
    is_accepted, _ = await opened.connect()
    assert is_accepted
    assert (await receive(opened))["type"] == "hello"
    return opened


async def receive(socket: SocketClient) -> dict[str, Any]:
    """Take the next frame."""
    frame: dict[str, Any] = await socket.receive_json_from()
    return frame


async def receive_until(socket: SocketClient, *kinds: str) -> list[dict[str, Any]]:
    """Take frames up to the first of these kinds."""
    frames = [await receive(socket)]
    while frames[-1]["type"] not in kinds:
        frames.append(await receive(socket))
    return frames


async def receive_close(socket: SocketClient) -> tuple[dict[str, Any], int]:
    """Take the last frame and the code the socket is closed with."""
    frame = await receive(socket)
    event = await socket.receive_output()
    assert event["type"] == "websocket.close"
    return frame, event["code"]


async def until(condition: Callable[[], object]) -> None:
    """Return when the condition holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


def start_frame(**fields: Any) -> dict[str, Any]:
    """Make a start frame."""
    messages = [{"role": "user", "content": "Hi"}]
    return {"type": "start", "id": "a", "model": "smol", "messages": messages} | fields
