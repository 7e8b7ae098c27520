"""Killable processes that render chat templates, so that a hostile one costs two seconds."""

import contextlib
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

RENDER_SECONDS = 2.0
START_SECONDS = 20.0
MAX_OUTPUT_BYTES = 16 << 20
_HEADER = struct.Struct(">I")
_CHILD = Path(__file__).with_name("render_child.py")


class RenderError(Exception):
    """The template could not be rendered; the message is fit for the client."""


class RenderPool:
    """At most ``size`` render processes, started when first needed; thread-safe."""

    def __init__(self, size: int = 2) -> None:
        self._seats = threading.BoundedSemaphore(size)
        self._idle: list[_RenderProcess] = []

    def render(
        self, template: str, messages: list[dict[str, Any]], variables: dict[str, Any]
    ) -> str:
        """Render messages within ``RENDER_SECONDS``; raises RenderError."""
        request = {"template": template, "messages": messages, "variables": variables}
        payload = json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")
        with self._seats:
            try:
                reply = self._ask(payload)
            except (OSError, ValueError) as error:
                raise RenderError(_describe(error)) from error
        if "error" in reply:
            raise RenderError(reply["error"])
        return str(reply["text"])

    def close(self) -> None:
        """End the idle processes; one that renders ends with its own time limit."""
        while self._idle:
            self._idle.pop().kill()

    def _ask(self, payload: bytes) -> Any:
        with contextlib.suppress(IndexError, BrokenPipeError):  # none idle, or it died meanwhile
            return self._ask_one(self._idle.pop(), payload)
        return self._ask_one(_RenderProcess(), payload)

    def _ask_one(self, process: "_RenderProcess", payload: bytes) -> Any:
        try:
            reply = json.loads(process.ask(payload, RENDER_SECONDS))
        except (OSError, ValueError):
            process.kill()
            raise
        self._idle.append(process)
        return reply


class _RenderProcess:
    """One child, used by one thread at a time."""

    def __init__(self) -> None:
        # Isolated mode and an empty environment: the child sees no secret and no path of ours.
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8", "TZ": os.environ.get("TZ", "")},
            bufsize=0,
        )
        try:
            self._read_frame(time.monotonic() + START_SECONDS)
        except OSError:
            self.kill()
            raise RenderError("The chat template renderer did not start.") from None

    def ask(self, payload: bytes, seconds: float) -> bytes:
        """Send one frame and wait for its answer; raises TimeoutError or OSError."""
        deadline = time.monotonic() + seconds
        self._write(_HEADER.pack(len(payload)) + payload, deadline)
        return self._read_frame(deadline)

    def kill(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def _write(self, payload: bytes, deadline: float) -> None:
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        view = memoryview(payload)
        while view:
            _, writable, _ = select.select([], [descriptor], [], _remaining(deadline))
            if not writable:
                raise TimeoutError
            # A pipe that select calls writable takes PIPE_BUF bytes without blocking.
            view = view[os.write(descriptor, view[: select.PIPE_BUF]) :]

    def _read_frame(self, deadline: float) -> bytes:
        (length,) = _HEADER.unpack(self._read(_HEADER.size, deadline))
        if length > MAX_OUTPUT_BYTES:
            raise ValueError("output too large")
        return self._read(length, deadline)

    def _read(self, num_bytes: int, deadline: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        chunks = bytearray()
        while len(chunks) < num_bytes:
            readable, _, _ = select.select([descriptor], [], [], _remaining(deadline))
            if not readable:
                raise TimeoutError
            chunk = os.read(descriptor, min(num_bytes - len(chunks), 1 << 16))
            if not chunk:
                raise BrokenPipeError("the renderer died")
            chunks += chunk
        return bytes(chunks)


def _remaining(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"The chat template took longer than {RENDER_SECONDS:g} seconds."
    if isinstance(error, ValueError):
        return "The chat template produced too much text."
    return "The chat template crashed its renderer."
