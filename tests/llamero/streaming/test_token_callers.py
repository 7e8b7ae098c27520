"""Tokens of identity providers open sockets as keys do, for as long as they last."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User

from llamero.accounts.models import TokenIssuer
from llamero.streaming import consumer
from tests.llamero.accounts.tokens.conftest import make_issuer
from tests.llamero.accounts.tokens.signing import claims_of, sign
from tests.llamero.streaming.conftest import (
    Connect,
    receive,
    receive_close,
    receive_until,
    start_frame,
    until,
)
from tests.llamero.streaming.fakes import FakeDispatcher

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def issuer(staff: User) -> TokenIssuer:
    return make_issuer()


def as_token(**fields: Any) -> str:
    return sign(claims_of(**{"preferred_username": "sam"} | fields))


@pytest.mark.parametrize("way", ["header", "subprotocol", "frame"])
async def test_a_token_opens_a_socket_as_a_key_does(
    connect: Connect, issuer: TokenIssuer, way: str
) -> None:
    token = as_token()
    header = [(b"authorization", f"Bearer {token}".encode())] if way == "header" else []
    offered = ["llamero.v1", f"llamero.key.{token}"] if way == "subprotocol" else None
    socket = await connect(*header, subprotocols=offered)
    await socket.connect()
    if way == "frame":
        await socket.send_json_to({"type": "auth", "key": token})

    assert (await receive(socket))["type"] == "hello"


async def test_a_token_that_expires_ends_its_socket_and_its_chats(
    connect: Connect,
    issuer: TokenIssuer,
    dispatcher: FakeDispatcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    issuer.leeway_seconds = 0
    await issuer.asave()
    dispatcher.pieces, dispatcher.step_seconds = ("word ",) * 1000, 0.05
    ends_at = time.time() + 600
    token = as_token(exp=ends_at)
    # For whoever comes in now it ends in two seconds.
    monkeypatch.setattr(consumer, "time", SimpleNamespace(time=lambda: ends_at - 2))
    socket = await connect((b"authorization", f"Bearer {token}".encode()))
    await socket.connect()
    await socket.send_json_to(start_frame())
    await receive_until(socket, "delta")

    last = (await receive_until(socket, "error"))[-1]

    assert last["error"]["code"] == "token_expired"
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4401}
    await until(lambda: dispatcher.streams[0].is_closed)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"exp": 1}, "token_expired"),
        ({"aud": "other"}, "invalid_token"),
        ({"iss": "https://evil.example"}, "invalid_api_key"),
        ({"sub": "subject-2", "preferred_username": "eve"}, "invalid_token"),
    ],
)
async def test_a_bad_token_is_closed_with_4401(
    connect: Connect, issuer: TokenIssuer, fields: dict[str, Any], code: str
) -> None:
    socket = await connect((b"authorization", f"Bearer {as_token(**fields)}".encode()))
    await socket.connect()

    frame, closed = await receive_close(socket)
    assert (closed, frame["error"]["code"]) == (4401, code)


async def test_a_token_whose_issuer_is_away_is_closed_with_4503(
    connect: Connect, issuer: TokenIssuer
) -> None:
    issuer.keys, issuer.jwks_url = "", "https://127.0.0.1/keys"
    await issuer.asave()
    socket = await connect((b"authorization", f"Bearer {as_token()}".encode()))
    await socket.connect()

    frame, closed = await receive_close(socket)
    assert (closed, frame["error"]["code"]) == (4503, "issuer_unavailable")
