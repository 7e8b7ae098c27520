"""A chat outlives its socket, and whoever owns it goes on with it on another."""

import asyncio
import random
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from llamero.accounts.services import IssuedKey, issue_api_key
from llamero.streaming import chat_job
from tests.llamero.streaming.conftest import (
    Connect,
    receive,
    receive_until,
    start_frame,
    until,
)
from tests.llamero.streaming.fakes import FakeDispatcher
from tests.llamero.streaming.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)
PIECES = tuple(f"word{number} " for number in range(30))


async def open_socket(connect: Connect, issued: IssuedKey) -> SocketClient:
    """Connect as the owner of a key."""
    socket = await connect((b"authorization", f"Bearer {issued.secret_text}".encode()))
    await socket.connect()
    assert (await receive(socket))["type"] == "hello"
    return socket


def resume_frame(run: str, after: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "resume", "id": "again", "run": run, "after": after} | fields


def text_of(frames: list[dict[str, Any]]) -> str:
    return "".join(frame["text"] for frame in frames if frame["type"] == "delta")


async def test_it_goes_on_after_a_delta_on_another_socket(
    socket: SocketClient, connect: Connect, issued: IssuedKey, dispatcher: FakeDispatcher
) -> None:
    dispatcher.pieces, dispatcher.step_seconds = PIECES, 0.01
    await socket.send_json_to(start_frame(resumable=True))
    begun = await receive_until(socket, "delta")
    begun.append(await receive(socket))
    run = begun[0]["run"]
    await socket.disconnect()
    assert not dispatcher.streams[0].is_cancelled

    other = await open_socket(connect, issued)
    await other.send_json_to(resume_frame(run, after=begun[-1]["seq"]))
    rest = await receive_until(other, "done", "error")

    assert rest[0] == {"type": "resumed", "id": "again", "model": "smol", "run": run}
    assert [frame["type"] for frame in rest[1:-1]] == ["delta"] * (len(PIECES) - 2)
    assert [f["seq"] for f in rest[1:-1]] == list(range(3, len(PIECES) + 1))
    assert text_of(begun + rest) == "".join(PIECES)
    assert rest[-1]["finish_reason"] == "stop"


@pytest.mark.parametrize(("num_more", "ends"), [(0, "done"), (1, "error")])
async def test_a_place_behind_the_end_is_an_error(
    socket: SocketClient, dispatcher: FakeDispatcher, num_more: int, ends: str
) -> None:
    dispatcher.pieces = PIECES
    await socket.send_json_to(start_frame(resumable=True))
    whole = await receive_until(socket, "done")
    after = len(PIECES) + num_more
    await socket.send_json_to(resume_frame(whole[0]["run"], after=after))
    told = await receive_until(socket, "done", "error")
    assert [frame["type"] for frame in told] == ["resumed", ends]
    assert told[-1].get("error", {"param": "after"})["param"] == "after"


async def test_it_is_told_whole_to_who_has_nothing(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.pieces = PIECES
    await socket.send_json_to(start_frame(resumable=True))
    whole = await receive_until(socket, "done")
    await socket.send_json_to(resume_frame(whole[0]["run"], id=None))
    again = await receive_until(socket, "done")
    told = [frame | {"id": "a"} for frame in again[1:]]
    assert told == whole[1:]


async def test_it_is_whole_however_often_its_sockets_close(
    socket: SocketClient, connect: Connect, issued: IssuedKey, dispatcher: FakeDispatcher
) -> None:
    rng = random.Random(7)
    dispatcher.pieces, dispatcher.step_seconds = PIECES * 4, 0.002
    await socket.send_json_to(start_frame(resumable=True))
    told = [await receive(socket)]
    run = told[0]["run"]
    for _ in range(15):
        told += [await receive(socket) for _ in range(rng.randrange(6))]
        await socket.disconnect()
        socket = await open_socket(connect, issued)
        known = sum(frame["type"] == "delta" for frame in told)
        await socket.send_json_to(resume_frame(run, known))
    told += await receive_until(socket, "done", "error")
    deltas = [frame for frame in told if frame["type"] == "delta"]
    assert [frame["seq"] for frame in deltas] == list(range(1, 4 * len(PIECES) + 1))
    assert text_of(told) == "".join(PIECES * 4)


async def test_nobody_else_finds_it(
    socket: SocketClient, connect: Connect, issued: IssuedKey
) -> None:
    await socket.send_json_to(start_frame(resumable=True))
    run = (await receive_until(socket, "done"))[0]["run"]
    stranger = await sync_to_async(issue_api_key)(user=issued.key.user, name="other")
    other = await open_socket(connect, stranger)
    refusals = []
    for name in (run, "run_" + "0" * 32, "nonsense"):
        await other.send_json_to(resume_frame(name))
        refusals.append(await receive(other))
    assert refusals[0]["error"]["code"] == "run_not_found"
    assert refusals[0]["id"] == "again"
    assert refusals[0] == refusals[1] == refusals[2]


async def test_a_plain_chat_cannot_be_resumed(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    await socket.send_json_to(start_frame(resumable=False))
    assert "run" not in (await receive_until(socket, "done"))[0]
    assert not dispatcher.kept


async def test_who_comes_back_can_cancel(
    socket: SocketClient, connect: Connect, issued: IssuedKey, dispatcher: FakeDispatcher
) -> None:
    dispatcher.pieces, dispatcher.step_seconds = PIECES * 100, 0.01
    await socket.send_json_to(start_frame(resumable=True))
    run = (await receive_until(socket, "delta"))[0]["run"]
    await socket.disconnect()
    other = await open_socket(connect, issued)
    await other.send_json_to(resume_frame(run))
    await receive_until(other, "delta")
    await other.send_json_to({"type": "cancel", "id": "again"})
    assert (await receive_until(other, "done"))[-1]["finish_reason"] == "cancelled"
    assert dispatcher.streams[0].is_cancelled


async def test_one_that_was_cancelled_elsewhere_ends_as_cancelled(
    socket: SocketClient, dispatcher: FakeDispatcher
) -> None:
    dispatcher.pieces, dispatcher.step_seconds = PIECES * 100, 0.01
    await socket.send_json_to(start_frame(resumable=True))
    await receive_until(socket, "delta")
    await dispatcher.streams[0].cancel()
    assert (await receive_until(socket, "done", "error"))[-1]["finish_reason"] == "cancelled"


async def test_a_revoked_key_ends_what_it_could_resume(
    connect: Connect,
    issued: IssuedKey,
    dispatcher: FakeDispatcher,
) -> None:
    dispatcher.pieces, dispatcher.step_seconds = PIECES * 100, 0.05
    socket = await open_socket(connect, issued)
    await socket.send_json_to(start_frame(resumable=True))
    await receive_until(socket, "delta")
    dispatcher.rights.end(f"key:{issued.key.pk}")
    assert (await receive_until(socket, "error"))[-1]["error"]["code"] == "key_revoked"
    await until(lambda: dispatcher.streams[0].is_closed)


async def test_one_whose_socket_closes_before_its_run_was_told_does_not_begin(
    socket: SocketClient, dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_kept = asyncio.Event()
    keep = dispatcher.keep_run

    async def keep_slowly(*arguments: Any) -> None:
        await keep(*arguments)
        is_kept.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(dispatcher, "keep_run", keep_slowly)
    await socket.send_json_to(start_frame(resumable=True))
    await is_kept.wait()
    await socket.disconnect()
    assert not dispatcher.streams


async def test_a_chat_that_waits_is_told_its_place(
    socket: SocketClient, dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_job, "QUEUE_SECONDS", 0.01)
    dispatcher.is_slot_taken = True
    await socket.send_json_to(start_frame())
    assert await receive(socket) == {"type": "queued", "id": "a", "model": "smol", "position": 1}
    dispatcher.streams[0].num_ahead, dispatcher.streams[0].wait_seconds = 4, 1.5
    moved = await receive(socket)
    assert (moved["type"], moved["position"], moved["wait_seconds"]) == ("queued", 5, 1.5)
    dispatcher.streams[0].release()
    assert (await receive(socket))["type"] == "started"
    await receive_until(socket, "done")


async def test_a_client_may_name_its_run(socket: SocketClient) -> None:
    name = "run_" + "0123456789abcdef" * 2
    await socket.send_json_to(start_frame(resumable=True, run=name))
    told = await receive_until(socket, "done")

    await socket.send_json_to(start_frame(id="b", resumable=True, run=name))
    refused = await receive(socket)
    await socket.send_json_to({"type": "resume", "id": "c", "run": name})
    retold = await receive_until(socket, "done")

    assert told[0]["run"] == name
    assert (refused["id"], refused["error"]["code"]) == ("b", "run_in_use")
    assert [one["text"] for one in retold if one["type"] == "delta"] == ["Hello", ", ", "world"]


@pytest.mark.parametrize(
    "fields",
    [
        {"run": "run_1", "resumable": True},
        {"run": 7, "resumable": True},
        {"run": "run_" + "0" * 32 + ".other", "resumable": True},
        {"run": "run_" + "0" * 32},
    ],
)
async def test_a_bad_name_of_a_run_is_refused(
    socket: SocketClient, fields: dict[str, object]
) -> None:
    await socket.send_json_to(start_frame(**fields))

    error = (await receive(socket))["error"]

    assert error["param"] == "run"
