"""Ask a server for a file from some byte on, following redirects, each of them checked."""

import contextlib
import http.client
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from urllib.parse import urljoin

from django.conf import settings

from models_registry.incoming.fetching.addresses import (
    FetchRefused,
    Target,
    is_hub,
    read_url,
    resolve,
)

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})\Z")
_LENGTH = re.compile(r"[0-9]{1,18}\Z")
_BAD_STATUS = {
    401: "it wants a token, or another one",
    403: "it does not let us have it",
    404: "there is no such file",
    410: "the file is gone",
}
# What a server may answer while it is busy: worth another try.
_PASSING = (408, 425, 429, 500, 502, 503, 504)


class FetchInterrupted(Exception):
    """The connection or the server failed for now; the text is public."""


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A file's bytes from ``offset`` on, about to be read; ``size_bytes`` is of the whole file."""

    response: http.client.HTTPResponse
    offset: int
    size_bytes: int
    tag: str


@contextlib.contextmanager
def ask_for_file(url: str, *, offset: int, tag: str) -> Iterator[FileAnswer]:
    """Ask for a file from ``offset`` on, if it is still the one that ``tag`` names.

    The answer begins at 0 where the server cannot, or the file has changed. Raises FetchRefused
    and FetchInterrupted.
    """
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_REDIRECTS + 1):
            target = read_url(url)
            connection = stack.enter_context(contextlib.closing(_connect(target)))
            response = _ask(connection, target, offset, tag)
            if response.status not in _REDIRECTS:
                yield _read_head(response, target, offset)
                return
            url = _follow(response, target, url)
        raise FetchRefused(f"There are more than {MAX_REDIRECTS} redirects.")


def _connect(target: Target) -> http.client.HTTPConnection:
    """Connect to an address that was judged, whatever the name means by then."""
    failure: OSError | None = None
    for address in resolve(target):
        try:
            plain = socket.create_connection((address, target.port), CONNECT_SECONDS)
        except OSError as error:
            failure = error
            continue
        try:
            return _over(_secure(plain, target) if target.scheme == "https" else plain, target)
        except OSError as error:
            plain.close()
            failure = error
    raise FetchInterrupted(f"Cannot connect to {target.host}: {_words(failure)}.")


def _secure(plain: socket.socket, target: Target) -> socket.socket:
    context = ssl.create_default_context()
    return context.wrap_socket(plain, server_hostname=target.host)


def _over(line: socket.socket, target: Target) -> http.client.HTTPConnection:
    """Speak HTTP over a socket that is connected already."""
    line.settimeout(SILENCE_SECONDS)
    kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
    # The class decides whether the port goes into Host; the line is ours.
    connection = kind(target.host, target.port)
    connection.sock = line
    return connection


def _ask(
    connection: http.client.HTTPConnection, target: Target, offset: int, tag: str
) -> http.client.HTTPResponse:
    headers = {"User-Agent": "llamero", "Accept": "*/*", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if tag:
            headers["If-Range"] = tag
    if settings.HUB_TOKEN and is_hub(target):
        headers["Authorization"] = f"Bearer {settings.HUB_TOKEN}"
    with reading(target.host):
        connection.request("GET", target.path, headers=headers)
        return connection.getresponse()


@contextlib.contextmanager
def reading(host: str) -> Iterator[None]:
    """Turn what a connection raises into words."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise FetchInterrupted(f"The connection to {host} broke: {_words(error)}.") from error


def _words(error: Exception | None) -> str:
    if isinstance(error, TimeoutError):
        return "it is silent"
    return str(getattr(error, "strerror", "") or type(error).__name__)


def _follow(response: http.client.HTTPResponse, target: Target, url: str) -> str:
    place = response.getheader("Location", "")
    following = urljoin(url, place)
    if not place or (target.scheme == "https" and not following.startswith("https://")):
        raise FetchRefused(f"{target.host} redirects to nowhere, or to an unsafe place.")
    return following


def _read_head(response: http.client.HTTPResponse, target: Target, offset: int) -> FileAnswer:
    answer = partial(FileAnswer, response, tag=_strong_tag(response))
    status = response.status
    if status in _PASSING:
        raise FetchInterrupted(f"{target.host} answers {status} for now.")
    if response.getheader("Content-Encoding", "identity") != "identity":
        raise FetchRefused(f"{target.host} sends the file packed; it must come as it is.")
    if status == 206 and (found := _RANGE.match(response.getheader("Content-Range", ""))):
        if int(found[1]) == offset:
            return answer(offset=offset, size_bytes=int(found[3]))
    elif status == 200:
        length = response.getheader("Content-Length", "")
        if not _LENGTH.match(length):
            raise FetchRefused(f"{target.host} does not say how large the file is.")
        return answer(offset=0, size_bytes=int(length))
    words = _BAD_STATUS.get(status, "that is no file")
    raise FetchRefused(f"{target.host} answers {status}: {words}.")


def _strong_tag(response: http.client.HTTPResponse) -> str:
    """Give the name of the present contents; a weak one promises no equal bytes."""
    tag = response.getheader("ETag", "")
    return tag if tag.startswith('"') and len(tag) <= 200 else ""
