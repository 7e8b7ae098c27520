"""A replica with a real model is killed under its clients, and none of them sees an error."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from inference.protocol.replicas import ReplicaState
from inference.relay.connect import connect
from inference.relay.registry import ReplicaRegistry
from tests.live import CHAT_MODEL, LiveLlamero
from tests.processes import PATIENCE_SECONDS, wait_until

NUM_STREAMS = 8
NUM_TOKENS = 48

pytestmark = pytest.mark.model


def read_stream(live: LiveLlamero, number: int, texts: list[str]) -> dict[str, Any]:
    """Read a chat to its end, its text into ``texts``; gives its usage."""
    body = {
        "model": CHAT_MODEL,
        "messages": [{"role": "user", "content": f"Tell story number {number}."}],
        "max_tokens": NUM_TOKENS,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    usage: dict[str, Any] = {}
    request = urllib.request.Request(
        live.base_url + "/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {live.api_key}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        lines = [line for raw in answer if _note(line := raw.decode().strip(), texts)]
    assert lines[-1] == "data: [DONE]"
    for line in lines[:-1]:
        chunk = json.loads(line.removeprefix("data: "))
        assert "error" not in chunk, chunk
        usage = chunk.get("usage") or usage
    return usage


def _note(line: str, texts: list[str]) -> bool:
    """Keep a chunk's text as soon as it comes."""
    if line.startswith("data: {"):
        choices = json.loads(line.removeprefix("data: "))["choices"]
        texts.extend(choice["delta"].get("content") or "" for choice in choices)
    return line.startswith("data: ")


def test_no_client_notices_a_killed_replica(live_llamero: LiveLlamero) -> None:
    with connect(live_llamero.redis_url) as redis, ThreadPoolExecutor(NUM_STREAMS) as pool:
        registry = ReplicaRegistry(redis)
        ready = [s for s in registry.list() if s.num_slots and s.kind == "chat"]
        texts: list[list[str]] = [[] for _ in range(NUM_STREAMS)]
        reading = [
            pool.submit(read_stream, live_llamero, number, texts[number])
            for number in range(NUM_STREAMS)
        ]
        wait_until(lambda: sum(len(text) > 8 for text in texts) >= 3, what="running streams")
        psutil.Process(ready[0].pid).kill()
        usages = [future.result() for future in reading]
        status = registry.get(ready[0].replica)
    assert [usage["completion_tokens"] for usage in usages] == [NUM_TOKENS] * NUM_STREAMS
    assert all(len("".join(text)) > NUM_TOKENS for text in texts)
    assert status is not None
    assert status.pid != ready[0].pid
    assert status.state is ReplicaState.READY
