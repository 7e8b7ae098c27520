"""Talks to the gateway's ASGI application as a server would, disconnects included."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from llamero.asgi import http_application
from tests.llamero.api.described import check_if_described
from tests.processes import PATIENCE_SECONDS

KEY = "llm_abcdefgh_0123456789012345678901234567890123456789"


@dataclass
class Answer:
    """A finished answer; ``parts`` are the body chunks as they were sent."""

    status: int
    headers: dict[str, str]
    parts: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    def json(self) -> Any:
        assert self.headers["content-type"].startswith("application/json"), self.headers
        return json.loads(self.body, parse_constant=_refuse)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json()["error"]
        assert {"message", "type", "param", "code"} <= set(error)
        return error

    @property
    def data(self) -> list[str]:
        """The data of each server-sent event; comments and ids are left out."""
        assert self.headers["content-type"] == "text/event-stream"
        events = self.body.decode().split("\n\n")
        assert events.pop() == ""
        # A comment may stand by itself, or before an event.
        return [one.partition("data: ")[2] for one in events if "data: " in one]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(one) for one in self.data if one != "[DONE]"]


class Exchange:
    """One request being served."""

    def __init__(self, method: str, url: str, body: bytes, headers: list[tuple[str, str]]) -> None:
        self._url = url
        path, _, query = url.partition("?")
        self.scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in headers],
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 5000),
        }
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self.answer = Answer(0, {}, [])
        self.has_news = asyncio.Event()
        self.task = asyncio.create_task(http_application(self.scope, self.incoming.get, self._send))

    async def finish(self) -> Answer:
        """Wait for the whole answer, which has to be one that the description knows."""
        await self.task
        check_if_described(self.scope["method"], self._url, self.answer)
        return self.answer

    async def wait_for(self, text: bytes) -> None:
        """Wait until the body holds some bytes."""
        while text not in self.answer.body:
            self.has_news.clear()
            await asyncio.wait_for(self.has_news.wait(), PATIENCE_SECONDS)

    async def hang_up(self) -> None:
        """Close the connection, and wait until the application knows."""
        self.incoming.put_nowait({"type": "http.disconnect"})
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(self.task, PATIENCE_SECONDS)

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.answer.status = message["status"]
            self.answer.headers = {
                k.decode("latin-1").lower(): v.decode("latin-1") for k, v in message["headers"]
            }
        elif message.get("body"):
            self.answer.parts.append(message["body"])
        self.has_news.set()


def start(
    method: str,
    url: str,
    body: Any = None,
    *,
    key: str | None = KEY,
    headers: dict[str, str] | None = None,
) -> Exchange:
    """Begin a request. ``body`` is bytes, or a value to send as JSON."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    given = {"host": "127.0.0.1"} | (
        {"content-type": "application/json"} if body is not None else {}
    )
    if key is not None:
        given["authorization"] = f"Bearer {key}"
    return Exchange(method, url, raw, list((given | (headers or {})).items()))


async def get(url: str, **options: Any) -> Answer:
    """GET a path."""
    return await start("GET", url, **options).finish()


async def post(url: str, body: Any = None, **options: Any) -> Answer:
    """POST to a path."""
    return await start("POST", url, {} if body is None else body, **options).finish()


def _refuse(name: str) -> float:
    raise AssertionError(f"{name} in a JSON body")
