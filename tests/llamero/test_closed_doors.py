"""Nothing opens to a stranger but what is listed here: each address, each method, each socket."""

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve

from llamero import dispatch
from llamero.api.async_view import AsyncAPIView
from llamero.api.paths import is_api_path
from llamero.websocket_urls import websocket_application
from tests.llamero.api.asgi_client import start
from tests.llamero.streaming.socket_client import SocketClient

# What anybody may read.
PUBLIC = {
    "",
    "docs",
    "favicon.ico",
    "health",
    "v1/health",
    "m/1/health",
    "m/1/v1/health",
    "livez",
    "readyz",
    "openapi.json",
    "v1/openapi.json",
    "account/sign-in",
    "admin/login/",
    "admin/jsi18n/",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(autouse=True)
def _no_data_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail whoever gets as far as the data plane."""

    def refuse() -> None:
        raise AssertionError("a stranger reached the data plane")

    monkeypatch.setattr(dispatch, "get_dispatcher", refuse)


def test_the_list_names_only_what_there_is() -> None:
    assert set(_addresses()) >= PUBLIC


@pytest.mark.django_db(transaction=True)
async def test_no_address_of_the_api_opens_without_a_key() -> None:
    num_seen = 0
    for path in _addresses():
        if path in PUBLIC or not is_api_path(f"/{path}"):
            continue
        answers = {}
        for method in METHODS:
            answer = await start(method, f"/{path}", b"{}", key=None).finish()
            answers[method] = answer.status
            if answer.status == 401 and method != "HEAD":
                assert b"error" in answer.body, path
        assert set(answers.values()) <= {401, 405}, (path, answers)
        assert 401 in answers.values(), path
        num_seen += 1
    assert num_seen > 50


@pytest.mark.django_db
def test_no_page_opens_without_a_login() -> None:
    client, num_seen = Client(), 0
    for path in _addresses():
        if path in PUBLIC or is_api_path(f"/{path}"):
            continue
        for method in METHODS:
            answer = client.generic(method, f"/{path}", b"{}", content_type="application/json")
            # What leads to the admin leads to its login.
            is_sent_away = answer.status_code == 302 and answer["Location"].startswith(
                ("/admin/", "/account/sign-in")
            )
            assert is_sent_away or answer.status_code in (401, 403, 404, 405), (path, method)
        num_seen += 1
    assert num_seen > 30


def test_what_is_public_can_only_be_read() -> None:
    for path in PUBLIC:
        view = resolve(f"/{path}").func
        if hasattr(view, "cls") and issubclass(view.cls, AsyncAPIView):
            assert not [
                name for name in ("post", "put", "patch", "delete") if hasattr(view.cls, name)
            ]


async def test_no_socket_opens_without_a_key() -> None:
    num_seen = 0
    for route in websocket_application.routes:
        path = _example(str(route.pattern)) or "ws/nothing"
        socket = SocketClient(websocket_application, f"/{path}")
        is_open, _ = await socket.connect()
        if is_open:
            await socket.send_json_to({"type": "start", "model": "smol", "messages": []})
            frames = [await socket.receive_output()]
            while frames[-1]["type"] != "websocket.close":
                frames.append(await socket.receive_output())
            assert frames[-1]["code"] in (4401, 4404), path
            assert len(frames) <= 2, path
        num_seen += 1
    assert num_seen >= 2


def _addresses() -> Iterator[str]:
    yield from _walk(get_resolver())


def _walk(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        text = prefix + _example(str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern, text)
        elif isinstance(pattern, URLPattern):
            yield text


def _example(route: str) -> str:
    """Fill the holes of a route."""
    route = re.sub(r"<[^>]+>", "1", route)
    route = re.sub(r"\(\?P\w*|\(.*\)", "1", route)
    return route.removeprefix("^").removesuffix("$").replace("\\Z", "")
