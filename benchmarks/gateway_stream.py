"""What a streamed token and a request cost in the gateway: CPU microseconds of its process.

    python benchmarks/gateway_stream.py [--streams 64] [--tokens 200] [--step-ms 20] [--n 300]

The gateway is real (server, ASGI handler, authentication, validation, SSE); the data plane is a
timer that gives every running job one token a step, through the streams the dispatcher uses.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT), str(ROOT / "platform")]
os.environ["DJANGO_SETTINGS_MODULE"] = "llamero.settings"
os.environ["LLAMERO_LOG_LEVEL"] = "ERROR"
KEY = "llm_benchkey_" + "0" * 40


@dataclass
class TimerDispatcher:
    """Gives each running job one token per step."""

    step_seconds: float
    gateway_id: str = "bench"
    running: dict[Any, int] = field(default_factory=dict)
    timer: Any = None

    async def facts(self, deployment: str, *, waits: bool = True) -> Any:
        from inference.protocol.replicas import ModelFacts

        return ModelFacts(num_vocab=50_000, context_length=8192)

    async def ask(self, deployment: str, question: Any, *, timeout: float = 10) -> Any:
        from inference.protocol.text import Rendered

        return Rendered(prompt="", tokens=(1, 2, 3))

    async def submit(self, job: Any, **_: Any) -> Any:
        from llamero.dispatch.stream import JobStream

        stream = JobStream(
            job,
            request_fill=lambda: None,
            request_cancel=lambda stream: self.running.pop(stream, None),
            request_close=lambda stream: self.running.pop(stream, None),
        )
        self.running[stream] = 0
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(self.step_seconds, self._step)
        return stream

    def _step(self) -> None:
        from inference.protocol.events import Done, FinishReason, Tokens

        for stream, num_given in list(self.running.items()):
            if num_given < stream.job.max_tokens:
                self.running[stream] = num_given + 1
                stream.accept(num_given + 1, Tokens(" word", (num_given,)))
            else:
                stream.accept(num_given + 1, Done(FinishReason.LENGTH, 3, 0, num_given))
                del self.running[stream]
        self.timer = None
        if self.running:
            self.timer = asyncio.get_running_loop().call_later(self.step_seconds, self._step)


def serve_gateway(port: int, step_seconds: float) -> None:
    """Run the gateway over the timer."""
    import django

    django.setup()
    from django.contrib.auth.models import User

    from inference.protocol.replicas import ModelKind, RuntimeProfile
    from llamero import dispatch
    from llamero.accounts import authentication
    from llamero.accounts.selectors import Caller
    from llamero.api import model_choice
    from llamero.asgi import application
    from llamero.limits import metering
    from llamero.limits.selectors import CallLimits
    from llamero.serve.server import ServeOptions, serve
    from models_registry.selectors import ServedModel

    dispatcher = TimerDispatcher(step_seconds)
    caller = Caller(User(pk=1), 1, "key:1")
    served = ServedModel(
        "m", "m", ModelKind.CHAT, 0, "llamero", RuntimeProfile(), {"architecture": "llama"}, 1
    )
    dispatch.get_dispatcher = lambda: dispatcher
    authentication.find_caller = {KEY: caller}.get
    model_choice.find_served_model = {"m": served}.get

    async def find_no_limits(*_: Any) -> CallLimits:
        return CallLimits()

    metering.find_limits = find_no_limits
    serve(application, ServeOptions(host="127.0.0.1", port=port, max_body_bytes=2**20))


async def request(port: int, num_tokens: int, *, stream: bool) -> int:
    """Send one chat; give the number of content chunks, or of tokens said to be used."""
    body = json.dumps(
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "max_tokens": num_tokens,
            "stream": stream,
        }
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write((head + body).encode())
    answer = await reader.read(-1)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200"), answer[:500]
    if stream:
        assert b"[DONE]" in answer
        return answer.count(b'" word"')
    return num_tokens


async def measure(port: int, process: psutil.Process, options: argparse.Namespace) -> None:
    """Print what streams and requests cost."""
    await asyncio.gather(*(request(port, 2, stream=True) for _ in range(20)))
    started, before = time.monotonic(), _cpu_seconds(process)
    counts = await asyncio.gather(
        *(request(port, options.tokens, stream=True) for _ in range(options.streams))
    )
    spent, wall = _cpu_seconds(process) - before, time.monotonic() - started
    num_tokens = sum(counts)
    assert num_tokens == options.streams * options.tokens, num_tokens
    print(
        f"{options.streams} streams, {num_tokens} tokens in {wall:.1f} s: "
        f"{1e6 * spent / num_tokens:.1f} us of CPU per token, everything included"
    )
    for stream in (False, True):
        before, started = _cpu_seconds(process), time.monotonic()
        for _ in range(0, options.n, 8):
            await asyncio.gather(*(request(port, 1, stream=stream) for _ in range(8)))
        spent, wall = _cpu_seconds(process) - before, time.monotonic() - started
        kind = "streamed" if stream else "whole"
        print(
            f"{options.n / wall:.0f} {kind} requests/s: {1e3 * spent / options.n:.2f} ms CPU each"
        )


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Start the gateway in a child, measure it, end it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--step-ms", type=float, default=20)
    parser.add_argument("--n", type=int, default=304)
    options = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        os.environ["LLAMERO_HOME"] = home
        context = multiprocessing.get_context("spawn")
        child = context.Process(target=serve_gateway, args=(port, options.step_ms / 1000))
        child.start()
        try:
            _wait_for(port)
            asyncio.run(measure(port, psutil.Process(child.pid), options))
        finally:
            child.terminate()
            child.join(10)


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit("The gateway did not start.")


if __name__ == "__main__":
    main()
