"""Frames that make no sense: each is answered with an error, and the socket stays open."""

import logging

import pytest

from llamero.errors import LlameroError
from llamero.streaming.frames import (
    MAX_FRAME_BYTES,
    CancelFrame,
    StartFrame,
    read_frame,
)
from tests.llamero.streaming.conftest import receive
from tests.llamero.streaming.socket_client import SocketClient

BAD_FRAMES = {
    "list": "[]",
    "null": "null",
    "number": "5",
    "string": '"x"',
    "empty object": "{}",
    "unknown type": '{"type":"nope"}',
    "type of a wrong type": '{"type":[]}',
    "empty": "",
    "no JSON": "{",
    "NaN": '{"type":"start","temperature":NaN}',
    "same key twice": '{"type":"ping","type":"ping"}',
    "half a surrogate": '{"type":"start","model":"\\ud800"}',
    "deep nesting": "[" * 100_000,
    "deep objects": '{"a":' * 10_000,
    "huge": "x" * (MAX_FRAME_BYTES + 1),
    "huge in bytes": '"' + "é" * (MAX_FRAME_BYTES // 2) + '"',
    "huge number": '{"type":"ping","n":' + "9" * 10_000 + "}",
    "id of a wrong type": '{"type":"cancel","id":5}',
    "id too long": '{"type":"cancel","id":"' + "x" * 65 + '"}',
    "id with a newline": '{"type":"start","id":"a\\n"}',
    "no id": '{"type":"cancel"}',
    "unknown id": '{"type":"cancel","id":"a"}',
    "resuming nothing": '{"type":"resume"}',
    "a run of a wrong type": '{"type":"resume","run":5}',
    "a place of a wrong type": '{"type":"resume","run":"run_1","after":"2"}',
    "a place below zero": '{"type":"resume","run":"run_1","after":-1}',
    "a place beyond reason": '{"type":"resume","run":"run_1","after":9999999999}',
    "resumable of a wrong type": '{"type":"start","model":"m","resumable":1}',
    "a second introduction": '{"type":"auth","key":"x"}',
}


def test_a_frame_without_a_type_that_names_a_model_is_a_start() -> None:
    assert read_frame('{"model":"m","messages":[]}') == StartFrame(
        None, {"model": "m", "messages": []}
    )


def test_type_and_id_are_no_part_of_the_request() -> None:
    assert read_frame('{"type":"start","id":"a:1","model":"m"}') == StartFrame(
        "a:1", {"model": "m"}
    )
    assert read_frame('{"type":"cancel","id":"a"}') == CancelFrame("a")


@pytest.mark.parametrize("text", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
@pytest.mark.django_db(transaction=True)
async def test_a_bad_frame_is_answered_and_the_socket_stays_open(
    socket: SocketClient, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    await socket.send_input({"type": "websocket.receive", "text": text})

    answer = await receive(socket)

    assert answer["type"] == "error"
    assert answer["error"].keys() >= {"message", "type", "param", "code"}
    assert answer["error"]["type"] == "invalid_request_error"
    await socket.send_json_to({"type": "ping"})
    assert await receive(socket) == {"type": "pong"}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.django_db(transaction=True)
async def test_a_binary_frame_is_answered_and_the_socket_stays_open(
    socket: SocketClient,
) -> None:
    await socket.send_to(bytes_data=b"\x00\xff")

    assert (await receive(socket))["error"]["code"] == "binary_frame"
    await socket.send_json_to({"type": "ping"})
    assert await receive(socket) == {"type": "pong"}


def test_a_key_must_be_a_string() -> None:
    with pytest.raises(LlameroError, match="key"):
        read_frame('{"type":"auth","key":5}')
