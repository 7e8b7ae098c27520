"""The web server's limits on requests, seen from a socket."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from llamero.serve.requests import path_of
from tests.processes import (
    PATIENCE_SECONDS,
    child_environment,
    find_free_port,
    is_listening,
    wait_until,
)

HEAD = b"POST /echo?key=secret HTTP/1.1\r\nHost: a\r\n"


class Served(NamedTuple):
    """A server's process, and where it listens."""

    process: "subprocess.Popen[bytes]"
    port: int


@contextlib.contextmanager
def serving(arrival_seconds: int) -> Iterator[Served]:
    """Run a server with a cap of 100,000 bytes, and so long for a request to arrive."""
    number = find_free_port()
    program = str(Path(__file__).with_name("serve_echo.py"))
    environment = child_environment(ARRIVAL_SECONDS=str(arrival_seconds))
    process = subprocess.Popen([sys.executable, program, str(number)], env=environment)
    try:
        wait_until(lambda: is_listening(number), what="the server listens")
        yield Served(process, number)
    finally:
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A running server that waits for who is slow."""
    with serving(60) as found:
        yield found


@pytest.fixture
def port(served: Served) -> int:
    """Where it listens."""
    return served.port


def is_whole(answer: bytes) -> bool:
    """Whether an answer that says its length is complete."""
    head, _, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\nContent-Length: (\d+)", head)
    return length is not None and len(body) >= int(length[1])


def exchange(port: int, *parts: bytes, waits: bool = False) -> tuple[bytes, bytes]:
    """Send the parts; give head and body of the answer, or (``waits``) of all until the end."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as line:
        for part in parts:
            try:
                line.sendall(part)
            except OSError:
                break
        answer = b""
        try:
            while (waits or not is_whole(answer)) and (chunk := line.recv(65536)):
                answer += chunk
        except ConnectionResetError:
            pass
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


def test_a_body_under_the_cap_reaches_the_application(port: int) -> None:
    body = b"x" * 90_000
    head = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    answer = exchange(port, head, body)
    assert answer[0].startswith(b"HTTP/1.1 200")
    assert answer[1].endswith(b"90000") or b"90000" in answer[1]


def test_a_declared_length_over_the_cap_is_refused_at_once(port: int) -> None:
    head, body = exchange(port, HEAD + b"Content-Length: 100001\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 Content Too Large")
    error = json.loads(body)["error"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] == "request_too_large"
    assert error["param"] is None


@pytest.mark.parametrize("origin", [b"https://app.example", b"https://evil.example"])
def test_a_page_that_may_call_reads_why_it_was_refused(port: int, origin: bytes) -> None:
    head, _ = exchange(port, HEAD + b"Origin: " + origin + b"\r\nContent-Length: 100001\r\n\r\n")
    is_allowed = b"\r\nAccess-Control-Allow-Origin: " + origin + b"\r\n" in head + b"\r\n"
    assert is_allowed == (origin == b"https://app.example")
    assert b"\r\nX-Request-Id: req_" in head


def test_a_chunked_body_over_the_cap_is_refused_while_it_arrives(port: int) -> None:
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    head, body = exchange(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 40)
    assert head.startswith(b"HTTP/1.1 413")
    assert json.loads(body)["error"]["code"] == "request_too_large"


@pytest.mark.parametrize("size", [b"186a1", b"f" * 16, b"f" * 1000])
def test_a_chunk_that_says_it_is_too_large_is_refused_at_once(port: int, size: bytes) -> None:
    head, body = exchange(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", size + b"\r\nx")
    assert head.startswith(b"HTTP/1.1 413")
    assert json.loads(body)["error"]["code"] == "request_too_large"


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("size", [10, 250_000, 300_001])
def test_files_have_a_cap_of_their_own(port: int, size: int, is_chunked: bool) -> None:
    head = b"POST /v1/files?x=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    if is_chunked:
        head += b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size
        answer = exchange(port, head, b"x" * size, b"\r\n0\r\n\r\n")
    else:
        answer = exchange(port, head + b"Content-Length: %d\r\n\r\n" % size, b"x" * size)
    if size > 300_000:
        assert answer[0].startswith(b"HTTP/1.1 413")
    else:
        assert answer[0].startswith(b"HTTP/1.1 200")
        assert str(size).encode() in answer[1]


@pytest.mark.parametrize("name", [b"", b"x", b"0" * 47, b"0" * 48 + b"/x", b"../" + b"0" * 48])
def test_a_piece_for_an_upload_that_cannot_be_is_refused_before_it_comes(
    port: int, name: bytes
) -> None:
    head = b"PATCH /v1/model-uploads/" + name + b" HTTP/1.1\r\nHost: a\r\n"
    answer, body = exchange(port, head + b"Content-Length: 90000\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 404 Not Found")
    assert json.loads(body)["error"]["code"] == "upload_not_found"


def test_a_body_that_is_too_large_is_not_asked_for(port: int) -> None:
    expecting = HEAD + b"Expect: 100-continue\r\n"
    head, body = exchange(port, expecting + b"Content-Length: 100001\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413")
    assert b"100 Continue" not in body
    small = expecting + b"Connection: close\r\nContent-Length: 2\r\n\r\n"
    head, body = exchange(port, small, b"{}")
    assert head.startswith(b"HTTP/1.1 100 Continue")
    assert b"HTTP/1.1 200" in body


@pytest.mark.parametrize("path", [b"/v1/messages", b"/m/x/v1/messages?beta=true"])
def test_anthropics_clients_are_refused_in_their_words(port: int, path: bytes) -> None:
    request = b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n"
    head, body = exchange(port, request)
    assert head.startswith(b"HTTP/1.1 413")
    document = json.loads(body)
    assert (document["type"], document["error"]["type"]) == ("error", "request_too_large")
    assert f"Request-Id: {document['request_id']}".encode() in head


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/v1/models?x=http://a/", b"/v1/models?x=http://a/"),
        (b"http://127.0.0.1:8000/v1/models", b"/v1/models"),
        (b"HTTPS://host", b"/"),
        (b"http://host?x", b"/?x"),
        (b"*", b"*"),
    ],
)
def test_a_target_may_name_the_server(target: bytes, path: bytes) -> None:
    assert path_of(target) == path


def test_a_refused_request_is_never_run(port: int) -> None:
    smuggled = b"GET /second HTTP/1.1\r\nHost: a\r\n\r\n"
    head, body = exchange(
        port, HEAD + b"Content-Length: 200000\r\n\r\n", b"x" * 200_000, smuggled, waits=True
    )
    assert head.startswith(b"HTTP/1.1 413")
    assert b"HTTP/1.1 200" not in body


def test_a_request_that_dawdles_is_ended() -> None:
    with serving(1) as (_, port):
        head, body = exchange(port, HEAD + b"Content-Length: 10\r\n\r\nx")
    assert head.startswith(b"HTTP/1.1 408")
    assert json.loads(body)["error"]["code"] == "timeout"


def test_bad_header_bytes_get_an_error_in_the_api_shape(port: int) -> None:
    head, _ = exchange(
        port, b"GET / HTTP/1.1\r\nHost: a\r\nX-A: a\x0bb\r\nConnection: close\r\n\r\n"
    )
    assert head.startswith(b"HTTP/1.1 400")
    assert b"application/json" in head


@pytest.mark.parametrize(
    "kind", [b"multipart/form-data; boundary=x", b"multipart/form-data", b"multipart/form-data; ="]
)
def test_a_form_is_left_to_the_application(port: int, kind: bytes) -> None:
    head = HEAD + b"Connection: close\r\nContent-Length: 2\r\nContent-Type: " + kind + b"\r\n\r\n"
    answer = exchange(port, head, b"{}")
    assert answer[0].startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (HEAD + b"Authorization: Bearer " + b"a" * 20_000, b"431"),
        (HEAD + b"Authorization: Bearer " + b"a" * 1_000_000, b"431"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1", b"431"),
        (HEAD + b"".join(b"X-%d: y\r\n" % number for number in range(600)), b"400"),
        (HEAD + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 9000) for n in range(3)), b"400"),
        (b"GARBAGE", b"400"),
        (b"GET /\xff HTTP/1.1", b"400"),
        (HEAD + b"Content-Length: -1", b"400"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz", b"400"),
    ],
)
def test_what_is_no_request_gets_an_error_in_the_api_shape(
    port: int, request_head: bytes, status: bytes
) -> None:
    head, body = exchange(port, request_head, b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


def test_a_burst_of_connections_waits_for_a_busy_server(served: Served) -> None:
    request = b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with contextlib.ExitStack() as lines:
        served.process.send_signal(signal.SIGSTOP)
        try:
            # As many as a system holds that was set to hold few.
            burst = [
                lines.enter_context(socket.create_connection(("127.0.0.1", served.port), 10))
                for _ in range(120)
            ]
        finally:
            served.process.send_signal(signal.SIGCONT)
        for line in burst:
            line.settimeout(PATIENCE_SECONDS)
            line.sendall(request)
        assert all(line.recv(12) == b"HTTP/1.1 200" for line in burst)
