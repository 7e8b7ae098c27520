"""Readers that do not read, or leave, or send too much; most at a real server."""

from collections.abc import Iterator

import psutil
import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import ClientConnection, connect

from llamero.streaming.flow_control import BoundedWebSocketProtocol
from tests.llamero.streaming.gateway import Gateway
from tests.processes import PATIENCE_SECONDS, wait_until

START = '{"type":"start","id":"a","model":"smol","messages":[{"role":"user","content":"%s"}]}'
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway."""
    served = Gateway(tmp_path_factory.mktemp("gateway"))
    try:
        served.start()
        yield served
    finally:
        served.stop()


def open_socket(gateway: Gateway) -> ClientConnection:
    """Open a socket that takes one frame at a time off the wire."""
    return connect(
        gateway.base_url.replace("http", "ws") + "/ws/v1/chat",
        additional_headers={"Authorization": f"Bearer {gateway.key}"},
        max_queue=1,
        ping_interval=None,
        close_timeout=0,
    )


def finish(socket: ClientConnection, word: str) -> list[str]:
    """Have a chat on a socket to its end, and give its frames."""
    socket.send(START % word)
    return read_to_end(socket)


def read_to_end(socket: ClientConnection) -> list[str]:
    """Read frames until a chat is done."""
    received = [str(socket.recv(timeout=PATIENCE_SECONDS))]
    while '"done"' not in received[-1]:
        received.append(str(socket.recv(timeout=PATIENCE_SECONDS)))
    return received


def test_a_reader_that_does_not_read_is_closed_and_its_chat_ended(gateway: Gateway) -> None:
    # What a first chat loads is not what the next one holds.
    with open_socket(gateway) as first:
        finish(first, "hello")
    wait_until(lambda: "job ended" in gateway.log, what="the end of a first chat")
    memory_before = psutil.Process(gateway.pid).memory_info().rss
    with open_socket(gateway) as lazy:
        lazy.send(START % "flood")
        wait_until(lambda: "bytes unread" in gateway.log, what="the lazy reader's end")
        with pytest.raises(ConnectionClosedError) as closed:
            read_to_end(lazy)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013

    wait_until(lambda: gateway.log.count("job ended") == 2, what="the end of its chat")
    memory_after = psutil.Process(gateway.pid).memory_info().rss
    assert memory_after - memory_before < 32 * MEBIBYTE
    with open_socket(gateway) as next_one:
        finish(next_one, "hello")
    assert "Traceback" not in gateway.log


def test_a_reader_that_reads_late_misses_nothing(gateway: Gateway) -> None:
    with open_socket(gateway) as late, open_socket(gateway) as other:
        late.send(START % "long")
        finish(other, "pause")
        received = read_to_end(late)

    deltas = [text for text in received if '"delta"' in text]
    numbers = [int(text.split('"seq":')[1].split(",")[0]) for text in deltas]
    assert numbers == list(range(1, 2001))


def test_a_frame_that_is_too_large_ends_the_socket_and_says_so(gateway: Gateway) -> None:
    with open_socket(gateway) as socket:
        socket.recv(timeout=PATIENCE_SECONDS)
        socket.send("x" * (MEBIBYTE + 1))
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(timeout=PATIENCE_SECONDS)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
    assert "Traceback" not in gateway.log


@pytest.mark.parametrize("state", ["STATE_CLOSING", "STATE_CLOSED"])
def test_what_is_sent_to_a_reader_that_left_is_no_error(state: str) -> None:
    protocol = BoundedWebSocketProtocol()
    protocol.state = getattr(protocol, state)
    protocol.serverSend("a word that was on its way")
