"""Streams as a client reads them: every byte once, in order, whatever the socket takes."""

import contextlib
import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llamero.serve.serve_stream import BIG_LENGTH, PIECES
from tests.processes import (
    PATIENCE_SECONDS,
    child_environment,
    find_free_port,
    is_listening,
    wait_until,
)

Running = tuple[int, "subprocess.Popen[str]"]


@contextlib.contextmanager
def serving(*options: object) -> Iterator[Running]:
    """Run the server; options are how long it drains, and the file that answers wait for."""
    number = find_free_port()
    program = str(Path(__file__).with_name("serve_stream.py"))
    process = subprocess.Popen(
        [sys.executable, program, str(number), *map(str, options)],
        env=child_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: is_listening(number), what="the server listens")
        yield number, process
    finally:
        assert process.stdout is not None
        process.stdout.close()
        # A second SIGTERM would find the handlers of the server gone already.
        if process.poll() is None:
            process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(0) as server:
        yield server


def test_a_chunked_stream_arrives_whole(running: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running[0], timeout=PATIENCE_SECONDS)
    for _ in range(2):
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"".join(PIECES) + b"."
    connection.close()


def test_a_stream_for_an_old_client_arrives_whole(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running[0]), PATIENCE_SECONDS) as line:
        line.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert answer.partition(b"\r\n\r\n")[2] == b"".join(PIECES) + b"."


def test_a_big_answer_of_known_length_arrives_whole(running: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running[0], timeout=PATIENCE_SECONDS)
    connection.request("GET", "/big")
    answer = connection.getresponse()
    assert len(answer.read()) == BIG_LENGTH
    connection.close()


def test_a_client_that_does_not_read_is_given_up(running: Running) -> None:
    port, process = running
    assert process.stdout is not None
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as line:
        line.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        assert process.stdout.readline() == "gone\n"


def test_a_stream_is_told_that_the_server_ends(running: Running) -> None:
    """The last test of this module: its server ends."""
    port, process = running
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request("GET", "/wait")
    answer = connection.getresponse()
    assert answer.read(3) == b"one"
    process.terminate()
    assert answer.read() == b"bye"
    connection.close()
    assert process.wait(PATIENCE_SECONDS) == 0


def test_answers_are_waited_for_and_new_clients_go_elsewhere(tmp_path: Path) -> None:
    goes_on = tmp_path / "goes on"
    with serving(PATIENCE_SECONDS, goes_on) as (port, process):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        connection.request("GET", "/later")
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.terminate()
        wait_until(lambda: not is_listening(port), what="new clients are refused")
        assert process.poll() is None
        goes_on.touch()
        assert connection.getresponse().read() == b"later"
        connection.close()
        assert process.wait(PATIENCE_SECONDS) == 0
