"""An ASGI application that streams what its path says, under the product's web server."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from llamero.serve.server import ServeOptions, serve

goodbye = asyncio.Event()
BIG_LENGTH = 200 * 65536
PIECES = (b"one", b"", b"two" * 100_000, b"three")


async def send_big(send: Any) -> None:
    """Send an answer of known length as Django does, faster than anyone reads."""
    headers = [(b"content-length", b"%d" % BIG_LENGTH)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for _ in range(200):
        await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def wait_for_goodbye(send: Any) -> None:
    """Stream until the server says that it ends."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"one", "more_body": True})
    await goodbye.wait()
    await send({"type": "http.response.body", "body": b"bye"})


async def answer_later(send: Any) -> None:
    """Say that somebody asks; answer when the file is there that the program was given."""
    print("asked", flush=True)
    while not Path(sys.argv[3]).exists():
        await asyncio.sleep(0.02)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"later"})


async def stream(scope: Any, receive: Any, send: Any) -> None:
    """Send the pieces; on /endless send until the client is given up."""
    await receive()
    if scope["path"] == "/big":
        await send_big(send)
        return
    if scope["path"] == "/wait":
        await wait_for_goodbye(send)
        return
    if scope["path"] == "/later":
        await answer_later(send)
        return
    leaving = asyncio.ensure_future(receive())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for piece in PIECES:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)
    while scope["path"] == "/endless" and not leaving.done():
        await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        await asyncio.sleep(0)
    if leaving.done():
        print("gone", flush=True)
    leaving.cancel()
    await send({"type": "http.response.body", "body": b"."})


if __name__ == "__main__":
    port, drain_seconds = int(sys.argv[1]), float(sys.argv[2])
    options = ServeOptions("127.0.0.1", port, max_body_bytes=1000, drain_seconds=drain_seconds)
    serve(stream, options, say_goodbye=goodbye.set)
