"""A small ASGI application under the product's web server, for test_limits.py."""

import os
import sys
from typing import Any

from llamero.api.paths import UPLOAD_EXTENSION
from llamero.serve.server import ServeOptions, serve


async def echo_size(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the number of bytes that came."""
    num_bytes, has_more = 0, True
    while has_more:
        message = await receive()
        num_bytes += len(message.get("body", b""))
        has_more = message.get("more_body", False)
    if upload := scope.get("extensions", {}).get(UPLOAD_EXTENSION):
        with upload["file"] as file:
            num_bytes += len(file.read())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(num_bytes).encode()})


if __name__ == "__main__":
    from llamero.serve import refusals

    # Who waits for the end of a line need not wait for long.
    refusals.LINGER_SECONDS = 0.5
    options = ServeOptions(
        host="127.0.0.1",
        port=int(sys.argv[1]),
        max_body_bytes=100_000,
        max_upload_bytes=300_000,
        arrival_seconds=int(os.environ.get("ARRIVAL_SECONDS", "20")),
        allowed_origins=frozenset({"https://app.example"}),
    )
    serve(echo_size, options)
