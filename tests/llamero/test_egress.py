"""Which servers we call, and what we take from them."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from llamero import egress
from llamero.egress import FetchFailed, UnsafeAddress, check_address, fetch_document
from tests.processes import PATIENCE_SECONDS


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Give the host of a server that answers one client."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            # Who has heard enough goes.
            with client, suppress(OSError):
                answer(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(PATIENCE_SECONDS)


def say(text: bytes) -> Callable[[socket.socket], None]:
    def answer(client: socket.socket) -> None:
        client.recv(4096)
        client.sendall(text)

    return answer


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/keys",
        "ftp://example.org/keys",
        "file:///etc/passwd",
        "https:///keys",
        "https://user@example.org/",
        "https://example.org/#here",
        "https://exam ple.org/",
        "https://example.org/\n",
        "https://ex\u0430mple.org/",
        "https://example.org:99999/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[2002:7f00:1::]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[::7f00:1]/",
        "https://[fec0::1]/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "//example.org/keys",
        "",
    ],
)
def test_what_is_not_public_or_not_safe_is_not_called(url: str) -> None:
    with pytest.raises(UnsafeAddress):
        check_address(url)
    with pytest.raises(UnsafeAddress):
        fetch_document(url)


@pytest.mark.parametrize(
    "url", ["https://example.org/keys?tenant=1", "https://example.org:8443/", "https://1.1.1.1/"]
)
def test_what_is_public_may_be_called(url: str) -> None:
    check_address(url)


@pytest.mark.parametrize("private", ["127.0.0.1", "10.0.0.8", "::1", "fe80::1%eth0"])
def test_a_name_must_not_lead_to_a_private_address(
    monkeypatch: pytest.MonkeyPatch, private: str
) -> None:
    def resolve(*_: Any, **__: Any) -> Any:
        return [(0, 0, 0, "", ("1.1.1.1", 443)), (0, 0, 0, "", (private, 443))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(UnsafeAddress):
        fetch_document("https://rebinding.example/keys")


def test_an_operator_may_name_a_host_inside(settings: Any) -> None:
    with answering(say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as host:
        settings.INTERNAL_HOSTS = [host]
        assert fetch_document(f"http://{host}/keys") == b"{}"
        with pytest.raises(UnsafeAddress):
            check_address("http://127.0.0.1:1/")


def test_each_address_of_a_name_is_tried(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as host:
        port = int(host.rpartition(":")[2])
        look_up = socket.getaddrinfo

        def resolve(name: str, *of: Any, **kinds: Any) -> Any:
            names = ("127.0.0.2", "127.0.0.1") if name == "two.example" else (name,)
            return [found for name in names for found in look_up(name, *of, **kinds)]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        settings.INTERNAL_HOSTS = ["two.example"]
        assert fetch_document(f"http://two.example:{port}/keys") == b"{}"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
        b"nonsense\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (egress.MAX_DOCUMENT_BYTES + 1),
    ],
)
def test_what_is_no_answer_is_none(settings: Any, answer: bytes) -> None:
    with answering(say(answer)) as host:
        settings.INTERNAL_HOSTS = [host]
        with pytest.raises(FetchFailed):
            fetch_document(f"http://{host}/keys")


@pytest.mark.parametrize(
    "beginning",
    [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"],
)
def test_a_slow_server_is_given_up(
    settings: Any, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr(egress, "TIMEOUT_SECONDS", 0.2)
    is_over = threading.Event()

    def drip(client: socket.socket) -> None:
        client.recv(4096)
        client.sendall(beginning)
        # Not for ever: whoever waits for the end hears of another failure.
        for _ in range(1000):
            if is_over.wait(0.02):
                return
            client.sendall(b"x")

    with answering(drip) as host:
        settings.INTERNAL_HOSTS = [host]
        try:
            with pytest.raises(FetchFailed, match="TimeoutError"):
                fetch_document(f"http://{host}/keys")
        finally:
            is_over.set()
