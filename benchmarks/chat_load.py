"""How fast does a server stream chats? A closed loop of clients over raw sockets.

Usage: python benchmarks/chat_load.py URL MODEL [--key KEY] [--clients 8] [--requests 32]
       [--max-tokens 64] [--words 60] [--shared-words 0] [--seed 1]

Prints one JSON line: generated tokens per second, TTFT and inter-token times in milliseconds.
Each prompt is made of its own words, after ``--shared-words`` that all requests share.
"""

import argparse
import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

VOCABULARY = str.split(
    "river stone window garden letter engine silver market shadow bridge forest candle "
    "hammer island mirror needle orchard pencil quarry ribbon saddle thunder umbrella valley "
    "whistle yellow anchor basket copper dragon ember feather granite harvest ivory jacket"
)


@dataclass(frozen=True, slots=True)
class Load:
    """What the clients ask for."""

    url: str
    model: str
    key: str = "none"
    clients: int = 8
    requests: int = 32
    max_tokens: int = 64
    words: int = 60
    shared_words: int = 0
    seed: int = 1


@dataclass(slots=True)
class Outcome:
    """What one request saw; times in seconds."""

    num_tokens: int = 0
    ttft: float = 0.0
    gaps: list[float] = field(default_factory=list)
    error: str = ""


def build_body(load: Load, index: int) -> bytes:
    """Write the request of one client; the same index and seed give the same prompt."""
    own = random.Random(load.seed * 1_000_003 + index)
    shared = random.Random(7).choices(VOCABULARY, k=load.shared_words)
    words = " ".join([*shared, *own.choices(VOCABULARY, k=load.words)])
    body = {
        "model": load.model,
        "messages": [{"role": "user", "content": f"Write a long story about: {words}."}],
        "max_tokens": load.max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return json.dumps(body).encode()


async def run_request(load: Load, index: int) -> Outcome:
    """Stream one chat to its end."""
    address = urlsplit(load.url)
    outcome = Outcome()
    body = build_body(load, index)
    reader, writer = await asyncio.open_connection(address.hostname, address.port or 80)
    started = last = time.perf_counter()
    writer.write(
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {load.key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    status = (await reader.readline()).split()[1].decode()
    if status != "200":
        outcome.error = f"HTTP {status}"
    while not outcome.error and (line := await reader.readline()):
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        if "error" in chunk:
            outcome.error = chunk["error"]["message"]
        if chunk.get("usage"):
            outcome.num_tokens = chunk["usage"]["completion_tokens"]
        if chunk.get("choices") and chunk["choices"][0]["delta"].get("content"):
            now = time.perf_counter()
            if outcome.ttft:
                outcome.gaps.append(now - last)
            else:
                outcome.ttft = now - started
            last = now
    writer.close()
    return outcome


async def run_load(load: Load) -> dict[str, float]:
    """Run all requests; gives the figures by name."""
    indices = iter(range(load.requests))
    outcomes: list[Outcome] = []

    async def client() -> None:
        outcomes.extend([await run_request(load, index) for index in indices])

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(load.clients)))
    seconds = time.perf_counter() - started
    ttfts = [outcome.ttft for outcome in outcomes if not outcome.error]
    gaps = [gap for outcome in outcomes for gap in outcome.gaps]
    num_tokens = sum(outcome.num_tokens for outcome in outcomes)
    return {
        "tokens_per_second": round(num_tokens / seconds, 2),
        "tokens": num_tokens,
        "errors": sum(bool(outcome.error) for outcome in outcomes),
        "ttft_ms_p50": percentile(ttfts, 50),
        "ttft_ms_p95": percentile(ttfts, 95),
        "itl_ms_p50": percentile(gaps, 50),
        "itl_ms_p99": percentile(gaps, 99),
    }


def percentile(seconds: list[float], share: int) -> float:
    """Give a percentile in milliseconds; 0 of nothing."""
    ordered = sorted(seconds)
    at = min(len(ordered) - 1, len(ordered) * share // 100)
    return round(1000 * ordered[at], 1) if ordered else 0.0


def main() -> None:
    """Run the load of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--key", default="none")
    for option, default in DEFAULTS.items():
        parser.add_argument(f"--{option}", type=int, default=default)
    arguments = vars(parser.parse_args())
    print(json.dumps(asyncio.run(run_load(Load(**arguments)))))


DEFAULTS = {
    "clients": 8,
    "requests": 32,
    "max-tokens": 64,
    "words": 60,
    "shared-words": 0,
    "seed": 1,
}

if __name__ == "__main__":
    main()
