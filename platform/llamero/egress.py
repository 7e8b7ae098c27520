"""Documents of other servers, read so that nobody can have us call where only we may.

By HTTPS, from public addresses, without redirects or proxies, bounded in size and time. Hosts in
``settings.INTERNAL_HOSTS`` may have private addresses, and be called without TLS.
"""

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from io import BufferedReader, RawIOBase
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from models_registry.incoming.fetching.addresses import is_public

MAX_DOCUMENT_BYTES = 512 * 1024
TIMEOUT_SECONDS = 4.0
_PORTS = {"https": 443, "http": 80}
_PIECE_BYTES = 16 * 1024


class UnsafeAddress(ValueError):
    """An address that we do not call. Its text is for the operator."""


class FetchFailed(Exception):
    """A server gave no document. Its text is for the operator, and has nothing of the answer."""


class ServerAway(FetchFailed):
    """A server did not answer, or that it cannot do now what it is asked to."""


def check_address(url: str) -> SplitResult:
    """Take a URL apart; raises UnsafeAddress for one that must not be called."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UnsafeAddress("This is no URL.") from None
    if (
        parts.scheme not in _PORTS
        or not parts.hostname
        or not url.isascii()
        or not url.isprintable()
    ):
        raise UnsafeAddress("This is no https:// URL.")
    if parts.username is not None or parts.password is not None or parts.fragment or " " in url:
        raise UnsafeAddress("A URL here has no user, password, fragment or space.")
    if _is_internal(parts.hostname, port or _PORTS[parts.scheme]):
        return parts
    if parts.scheme != "https":
        raise UnsafeAddress("Must be https://, unless LLAMERO_INTERNAL_HOSTS names the host.")
    try:
        ip_address(parts.hostname)
    except ValueError:
        return parts
    _check_public(parts.hostname)
    return parts


def fetch_document(url: str, *, bearer: str = "") -> bytes:
    """Give what a server answers to who shows a token, or to anybody; blocks for a few seconds.

    Raises UnsafeAddress or FetchFailed.
    """
    headers = {"Accept": "application/json"}
    if bearer:
        headers["Authorization"] = f"Bearer {bearer}"
    return _ask("GET", url, None, headers)


def ask_document(url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Give what a server answers to what is sent to it; blocks for a few seconds.

    Raises UnsafeAddress or FetchFailed.
    """
    return _ask("POST", url, body, headers)


def post_document(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Tell a server something; blocks for a few seconds. Raises UnsafeAddress or FetchFailed."""
    with _calling("POST", url, body, headers) as response:
        if not 200 <= response.status < 300:
            raise _refusal_of(response, str(urlsplit(url).hostname))


def _ask(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    with _calling(method, url, body, headers) as response:
        return _read(response, str(urlsplit(url).hostname))


@contextmanager
def _calling(
    method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> Iterator[HTTPResponse]:
    """Call a server, and hang up when its answer is read."""
    parts = check_address(url)
    connection = _PinnedConnection(parts, time.monotonic() + TIMEOUT_SECONDS)
    try:
        connection.request(method, _target(parts), body, {**headers, "User-Agent": "llamero"})
        yield connection.getresponse()
    except UnsafeAddress:
        raise
    except (OSError, HTTPException, ValueError) as error:
        kind = type(error).__name__
        raise ServerAway(f"{parts.hostname} could not be asked: {kind}") from error
    finally:
        connection.close()


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _refusal_of(response: HTTPResponse, host: str) -> FetchFailed:
    kind = ServerAway if response.status >= 500 else FetchFailed
    return kind(f"{host} answered {response.status}")


def _read(response: HTTPResponse, host: str) -> bytes:
    if response.status != 200:
        raise _refusal_of(response, host)
    pieces, num_bytes = [], 0
    while piece := response.read1(_PIECE_BYTES):
        pieces.append(piece)
        num_bytes += len(piece)
        if num_bytes > MAX_DOCUMENT_BYTES:
            raise FetchFailed(f"{host} answered more than {MAX_DOCUMENT_BYTES} bytes")
    # None where the answer did not say how long it is.
    if response.length:
        raise FetchFailed(f"{host} answered less than it said")
    return b"".join(pieces)


class _PinnedConnection(HTTPConnection):
    """Connects to an address that was looked at: a name cannot lead elsewhere a moment later."""

    def __init__(self, parts: SplitResult, deadline: float) -> None:
        assert parts.hostname is not None
        super().__init__(parts.hostname, parts.port or _PORTS[parts.scheme])
        self._is_secure = parts.scheme == "https"
        self._deadline = deadline

    def connect(self) -> None:
        """Look the name up, refuse private addresses, connect."""
        self.sock = self._reach(_resolve(self.host, self.port))
        if self._is_secure:
            self.sock = _tls().wrap_socket(self.sock, server_hostname=self.host)
        self.sock.settimeout(_left(self._deadline))

    def _reach(self, addresses: list[str]) -> socket.socket:
        """Connect to the first address that answers: a server may listen at one of them alone."""
        *others, last = addresses
        for address in others:
            with suppress(OSError):
                return socket.create_connection((address, self.port), _left(self._deadline) / 2)
        return socket.create_connection((last, self.port), _left(self._deadline))

    def response_class(self, sock: socket.socket, *args: Any, **kwargs: Any) -> HTTPResponse:  # type: ignore[override]
        """Read an answer, its head too, in the time that is left for all of it."""
        response = HTTPResponse(sock, *args, **kwargs)
        response.fp.close()
        response.fp = BufferedReader(_TimedReader(sock, self._deadline))
        return response


class _TimedReader(RawIOBase):
    """Reads from a socket until a moment: a server that sends byte by byte gains no time."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._deadline = sock, deadline
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        """Say so."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what is there, or wait for it as long as may be; raises TimeoutError."""
        self._sock.settimeout(_left(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Let go of the socket."""
        if not self.closed:
            self._raw.close()
        super().close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _resolve(host: str, port: int) -> list[str]:
    """Give the addresses of a host; all of them must be public."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(info[4][0]) for info in found]
    if not _is_internal(host, port):
        for address in addresses:
            _check_public(address)
    return addresses


def _check_public(address: str) -> None:
    if not is_public(address):
        raise UnsafeAddress("This leads to a private address; see LLAMERO_INTERNAL_HOSTS.")


def _is_internal(host: str, port: int) -> bool:
    shown = f"[{host}]" if ":" in host else host
    named = {one.lower() for one in settings.INTERNAL_HOSTS}
    return not named.isdisjoint({shown.lower(), f"{shown}:{port}".lower()})


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
