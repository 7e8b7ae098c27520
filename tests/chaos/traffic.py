"""HTTP clients over raw sockets: cheap enough for thousands, and free to leave at any byte."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.inference.worker.wholeness import foresee, spell

COMPLETIONS = "/v1/completions"
# What a client may meet, and is invited to try again.
RETRYABLE = frozenset(
    {
        "engine_lost",
        "broker_unavailable",
        "no_ready_replica",
        "queue_full",
        "key_queue_full",
        "deadline_exceeded",
        "stream_detached",
        "unavailable",
    }
)
LIMIT_SECONDS = 90.0
FILLING_CLIENTS, FILLING_ROUNDS = 64, 4


@dataclass(slots=True)
class Answer:
    """What a client got. ``status`` is 0 where the connection broke before an answer."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    num_events: int = 0
    code: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    is_finished: bool = False
    began_at: float = 0.0
    first_at: float = 0.0
    ended_at: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended_at - self.began_at

    @property
    def retry_after(self) -> int:
        """After how many seconds to try again; 0 where nothing was said."""
        return int(self.headers.get("retry-after", "0"))

    @property
    def is_retryable(self) -> bool:
        """Whether it failed in a form that invites another try."""
        return self.code in RETRYABLE and (self.status == 200 or self.retry_after > 0)


def make_prompt(number: int) -> list[int]:
    """Give a prompt of tokens of its own: never the one that crashes engines."""
    rng = random.Random(number)
    return [70, *(rng.randrange(10, 200) for _ in range(12))]


def make_body(prompt: Sequence[int], num_tokens: int, **fields: Any) -> dict[str, Any]:
    """Ask for a completion of exactly so many tokens, streamed."""
    body = {"model": "chat", "prompt": list(prompt), "max_tokens": num_tokens, "stream": True}
    return body | {"stream_options": {"include_usage": True}} | fields


def is_right(answer: Answer, prompt: Sequence[int], num_tokens: int) -> bool:
    """Tell whether an answer is the fake engine's, whole, and counted truly."""
    is_whole = answer.text == spell(foresee(prompt, num_tokens))
    return answer.is_finished and is_whole and answer.usage["completion_tokens"] == num_tokens


def write_request(
    key: str,
    body: dict[str, Any],
    path: str = COMPLETIONS,
    host: str = "127.0.0.1",
    request_id: str = "",
) -> bytes:
    """Spell a POST request."""
    content = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        f"Authorization: Bearer {key}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        "Connection: close",
        *([f"X-Request-Id: {request_id}"] if request_id else []),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def ask(
    ports: int | Sequence[int],
    key: str,
    body: dict[str, Any],
    path: str = COMPLETIONS,
    host: str = "127.0.0.1",
    request_id: str = "",
) -> Answer:
    """Make a request and read its answer to the end.

    Where several ports are given, one that nobody listens at is passed over, as by a proxy.
    """
    answer = Answer(began_at=time.monotonic())
    choices = [ports] if isinstance(ports, int) else list(ports)
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(LIMIT_SECONDS):
            reader, writer = await _connect(host, choices)
            try:
                writer.write(write_request(key, body, path, host, request_id))
                await read_answer(reader, answer)
            finally:
                writer.close()
    answer.ended_at = time.monotonic()
    return answer


async def get(port: int, path: str, key: str = "") -> Answer:
    """Make a GET request."""
    answer = Answer(began_at=time.monotonic())
    words = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
    if key:
        words += f"Authorization: Bearer {key}\r\n"
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(LIMIT_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(f"{words}\r\n".encode())
                await read_answer(reader, answer)
            finally:
                writer.close()
    answer.ended_at = time.monotonic()
    return answer


async def read_answer(reader: asyncio.StreamReader, answer: Answer) -> None:
    """Read an answer, an event stream or a document, into what is known of it."""
    answer.status = int((await reader.readuntil(b"\r\n")).split()[1])
    while line := (await reader.readuntil(b"\r\n")).strip():
        name, _, value = line.decode().partition(":")
        answer.headers[name.lower()] = value.strip()
    if answer.headers.get("content-type") != "text/event-stream":
        length = int(answer.headers.get("content-length", "0"))
        _take_document(answer, json.loads(await reader.readexactly(length) or b"{}"))
        return
    while line := await reader.readline():
        if line.startswith(b"data: "):
            _take_event(answer, line[6:].strip())


def _take_document(answer: Answer, document: dict[str, Any]) -> None:
    answer.first_at = time.monotonic()
    if error := document.get("error"):
        answer.code = str(error["code"])
        return
    answer.is_finished = True
    answer.usage = document.get("usage") or {}
    for choice in document.get("choices", ()):
        answer.text += choice.get("text") or ""


def _take_event(answer: Answer, data: bytes) -> None:
    if data == b"[DONE]":
        answer.is_finished = not answer.code
        return
    document = json.loads(data)
    if error := document.get("error"):
        answer.code = str(error["code"])
        return
    answer.num_events += 1
    answer.usage = document.get("usage") or answer.usage
    for choice in document["choices"]:
        if piece := choice.get("text") or choice.get("delta", {}).get("content"):
            answer.first_at = answer.first_at or time.monotonic()
            answer.text += piece


async def _connect(
    host: str, ports: Sequence[int]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for port in ports[:-1]:
        with contextlib.suppress(ConnectionRefusedError):
            return await asyncio.open_connection(host, port)
    return await asyncio.open_connection(host, ports[-1])


async def fill_pools(port: int, key: str) -> None:
    """Have a gateway open all the threads and connections that it may.

    Its pools grow with need, to a bound; what it holds is compared from there.
    """
    for number in range(FILLING_ROUNDS):
        prompts = [
            make_prompt(10**7 + number * FILLING_CLIENTS + one) for one in range(FILLING_CLIENTS)
        ]
        await asyncio.gather(*(ask(port, key, make_body(prompt, 4)) for prompt in prompts))
