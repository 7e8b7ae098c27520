"""Who may use the socket, how they prove it, and what ends when they no longer may."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import OperationalError
from pytest_django import Settings

from llamero.accounts import selectors, tickets, wrong_keys
from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import find_caller, recent_callers, review_owners
from llamero.accounts.services import IssuedKey, issue_api_key, revoke_api_keys
from llamero.accounts.tickets import issue_ticket
from llamero.streaming import consumer
from tests.llamero.streaming.conftest import (
    OWN_ORIGIN,
    Connect,
    receive,
    receive_close,
    receive_until,
    start_frame,
    until,
)
from tests.llamero.streaming.fakes import FakeDispatcher
from tests.llamero.streaming.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


async def test_staff_may_come_with_a_session_from_our_own_pages(
    connect: Connect, session_cookie: bytes, staff: User, dispatcher: FakeDispatcher
) -> None:
    socket = await connect((b"cookie", session_cookie), OWN_ORIGIN)
    assert (await socket.connect())[0]
    assert (await receive(socket))["type"] == "hello"

    await socket.send_json_to(start_frame())
    await receive_until(socket, "done")

    assert dispatcher.streams[0].job.owner == f"user:{staff.pk}"


@pytest.mark.parametrize(
    "origin",
    [
        b"https://evil.example",
        b"null",
        b"",
        b"http://localhost:8001",
        b"http://localhost.evil.example",
        b"http://[::1",
    ],
)
async def test_a_session_from_a_foreign_page_is_refused_at_the_handshake(
    connect: Connect, session_cookie: bytes, origin: bytes
) -> None:
    socket = await connect((b"cookie", session_cookie), (b"origin", origin))

    assert not (await socket.connect())[0]


async def test_a_session_without_an_origin_is_refused_at_the_handshake(
    connect: Connect, session_cookie: bytes
) -> None:
    socket = await connect((b"cookie", session_cookie))

    assert not (await socket.connect())[0]


async def test_a_trusted_origin_counts_as_our_own(
    connect: Connect, session_cookie: bytes, settings: Settings
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://chat.example"]
    socket = await connect((b"cookie", session_cookie), (b"origin", b"https://chat.example"))

    assert (await socket.connect())[0]


@pytest.mark.parametrize("host", [b"evil.example", b"", b"localhost@evil.example"])
async def test_a_host_that_is_not_ours_is_refused(
    connect: Connect, issued: IssuedKey, host: bytes
) -> None:
    key = (b"authorization", f"Bearer {issued.secret_text}".encode())
    socket = await connect(key, host=host)

    assert not (await socket.connect())[0]


async def test_a_session_of_someone_who_is_not_staff_is_closed_with_4401(
    connect: Connect, session_cookie: bytes, staff: User
) -> None:
    staff.is_staff = False
    await staff.asave()
    socket = await connect((b"cookie", session_cookie), OWN_ORIGIN)
    await socket.connect()

    frame, code = await receive_close(socket)

    assert (code, frame["error"]["type"]) == (4401, "authentication_error")


async def test_a_key_may_come_as_a_subprotocol_and_is_not_sent_back(
    connect: Connect, issued: IssuedKey
) -> None:
    socket = await connect(subprotocols=["llamero.v1", f"llamero.key.{issued.secret_text}"])

    assert await socket.connect() == (True, "llamero.v1")
    assert (await receive(socket))["type"] == "hello"


async def test_a_key_may_come_in_the_first_frame(connect: Connect, issued: IssuedKey) -> None:
    socket = await connect()
    await socket.connect()

    await socket.send_json_to({"type": "auth", "key": issued.secret_text})

    assert (await receive(socket))["type"] == "hello"


async def test_a_ticket_opens_a_socket_as_its_key_would(
    connect: Connect, issued: IssuedKey, session_cookie: bytes, dispatcher: FakeDispatcher
) -> None:
    caller = await sync_to_async(find_caller)(issued.secret_text)
    assert caller is not None
    path = f"/ws/v1/chat?ticket={issue_ticket(caller).text}"
    socket = await connect(
        (b"cookie", session_cookie), (b"origin", b"https://app.example"), path=path
    )
    await socket.connect()
    assert (await receive(socket))["type"] == "hello"

    await socket.send_json_to(start_frame())
    await receive_until(socket, "done")

    assert dispatcher.streams[0].job.owner == f"key:{issued.key.pk}"


@pytest.mark.parametrize("spoil", ["text", "age", "key"])
async def test_a_ticket_that_does_not_count_is_closed_with_4401(
    connect: Connect, issued: IssuedKey, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    caller = await sync_to_async(find_caller)(issued.secret_text)
    assert caller is not None
    ticket = issue_ticket(caller).text
    if spoil == "text":
        ticket = f"x{ticket}"
    elif spoil == "age":
        monkeypatch.setattr(tickets, "TICKET_SECONDS", -1)
    else:
        await sync_to_async(revoke_api_keys)(keys=[issued.key])
    socket = await connect(path=f"/ws/v1/chat?ticket={ticket}")
    await socket.connect()

    frame, code = await receive_close(socket)

    assert (code, frame["error"]["code"]) == (4401, "invalid_api_key")


@pytest.mark.parametrize("origin", [b"https://evil.example", b"null"])
async def test_a_key_needs_no_origin_of_ours(
    connect: Connect, issued: IssuedKey, origin: bytes
) -> None:
    key = (b"authorization", f"Bearer {issued.secret_text}".encode())
    socket = await connect(key, (b"origin", origin))
    await socket.connect()

    assert (await receive(socket))["type"] == "hello"


@pytest.mark.parametrize(
    "header", [b"Bearer llm_wrong", b"Bearer", b"Basic eDp5", b"", b"Bearer \xff", b"x" * 10_000]
)
async def test_a_bad_key_is_closed_with_4401(connect: Connect, header: bytes) -> None:
    socket = await connect((b"authorization", header))
    await socket.connect()

    frame, code = await receive_close(socket)

    assert (code, frame["error"]["code"]) == (4401, "invalid_api_key")


async def test_a_key_in_the_query_string_is_no_key(connect: Connect, issued: IssuedKey) -> None:
    key = issued.secret_text
    socket = await connect(path=f"/ws/v1/chat?token={key}&api_key={key}&key={key}")
    await socket.connect()

    await socket.send_json_to(start_frame())

    assert (await receive_close(socket))[1] == 4401


@pytest.mark.parametrize("text", ["[]", '{"type":"ping"}', '{"type":"auth","key":"x"}', "{"])
async def test_whoever_does_not_introduce_themselves_first_is_closed_with_4401(
    connect: Connect, text: str, dispatcher: FakeDispatcher
) -> None:
    socket = await connect()
    await socket.connect()

    await socket.send_to(text_data=text)

    assert (await receive_close(socket))[1] == 4401
    assert not dispatcher.questions


async def test_whoever_says_nothing_is_closed_with_4401(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer, "AUTH_TIMEOUT_SECONDS", 0.01)
    socket = await connect()
    await socket.connect()

    assert (await receive_close(socket))[1] == 4401


async def test_a_revoked_key_starts_nothing_more(
    socket: SocketClient, issued: IssuedKey, dispatcher: FakeDispatcher
) -> None:
    await sync_to_async(revoke_api_keys)(keys=[issued.key])
    recent_callers.clear()

    await socket.send_json_to(start_frame())

    frame, code = await receive_close(socket)
    assert (code, frame["error"]["code"]) == (4401, "key_revoked")
    assert not dispatcher.streams


async def test_revoking_a_key_ends_its_running_chats(
    socket: SocketClient,
    issued: IssuedKey,
    dispatcher: FakeDispatcher,
    connect: Connect,
) -> None:
    dispatcher.pieces, dispatcher.step_seconds = ("word ",) * 1000, 0.05
    watched = await connect((b"authorization", f"Bearer {issued.secret_text}".encode()))
    await watched.connect()
    await watched.send_json_to(start_frame())
    await receive_until(watched, "delta")

    await sync_to_async(revoke_api_keys)(keys=[issued.key])
    assert await review_owners(frozenset(dispatcher.rights.followers)) == {f"key:{issued.key.pk}"}
    dispatcher.rights.end(f"key:{issued.key.pk}")

    last = (await receive_until(watched, "error"))[-1]
    assert last["error"]["code"] == "key_revoked"
    assert await watched.receive_output() == {"type": "websocket.close", "code": 4401}
    await until(lambda: dispatcher.streams[0].is_closed)


async def test_who_was_known_counts_while_nobody_can_be_asked(
    issued: IssuedKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await sync_to_async(find_caller)(issued.secret_text)
    assert caller is not None

    def fail(*_: object) -> None:
        raise OperationalError("out of reach")

    assert not await review_owners(frozenset({caller.owner}))
    monkeypatch.setattr(selectors, "_find_lost", fail)
    monkeypatch.setattr(selectors, "_read_caller", fail)
    with pytest.raises(OperationalError):
        await review_owners(frozenset({caller.owner}))
    assert await sync_to_async(find_caller)(issued.secret_text) == caller


async def test_revoking_a_key_closes_sockets_that_do_nothing(
    socket: SocketClient, issued: IssuedKey, dispatcher: FakeDispatcher
) -> None:
    dispatcher.rights.end(f"key:{issued.key.pk}")

    frame, code = await receive_close(socket)
    assert (code, frame["error"]["code"]) == (4401, "key_revoked")


async def test_a_socket_that_is_gone_is_told_of_nothing(
    socket: SocketClient, issued: IssuedKey, dispatcher: FakeDispatcher
) -> None:
    await socket.disconnect()

    await until(lambda: not dispatcher.rights.followers[f"key:{issued.key.pk}"])


async def test_a_key_for_other_things_is_closed_with_4403(connect: Connect, staff: User) -> None:
    key = await sync_to_async(issue_api_key)(user=staff, name="lists", scopes=[Scope.MODELS])
    socket = await connect((b"authorization", f"Bearer {key.secret_text}".encode()))
    await socket.connect()

    frame, code = await receive_close(socket)

    assert (code, frame["error"]["code"]) == (4403, "insufficient_scope")


@pytest.mark.parametrize(
    ("networks", "code"), [(["192.0.2.0/24"], None), (["2001:db8::/32"], "invalid_api_key")]
)
async def test_a_key_counts_where_it_may_be_used(
    connect: Connect, staff: User, networks: list[str], code: str | None
) -> None:
    key = await sync_to_async(issue_api_key)(user=staff, name="office", networks=networks)
    socket = await connect((b"authorization", f"Bearer {key.secret_text}".encode()))
    socket.scope["client"] = ("192.0.2.7", 4000)
    await socket.connect()

    assert (await receive(socket)).get("error", {}).get("code") == code


async def test_many_wrong_keys_on_sockets_are_told_to_wait(
    connect: Connect, dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrong_keys, "HOLD_SECONDS", 0.0)
    dispatcher.wrong_keys.number = 1000
    socket = await connect((b"authorization", b"Bearer llm_wrong"))
    socket.scope["client"] = ("192.0.2.7", 4000)
    await socket.connect()

    frame, code = await receive_close(socket)
    assert (code, frame["error"]["code"]) == (4429, "too_many_wrong_keys")


async def test_signing_out_ends_what_the_session_may_do(
    connect: Connect, session_cookie: bytes
) -> None:
    socket = await connect((b"cookie", session_cookie), OWN_ORIGIN)
    await socket.connect()
    assert (await receive(socket))["type"] == "hello"
    await Session.objects.all().adelete()

    await socket.send_json_to(start_frame())

    assert (await receive_close(socket))[1] == 4401


async def test_a_path_that_does_not_exist_is_refused(connect: Connect) -> None:
    socket = await connect(path="/ws/v1/nothing")

    assert not (await socket.connect())[0]
