"""How long does a 4,000-token prompt hold back four streams that decode?

Usage, beside a running ``make run``:

    python benchmarks/long_prompt_gap.py [--rounds 3] [--url http://127.0.0.1:8000] [--home var]

Four clients stream; once each has ten tokens, a fifth sends the long prompt. For Llamero and
llama-server in turn: the median gap between tokens before that, the largest gap until the fifth
has its first token, and how many ordinary steps that is. For Llamero the time of one slice of the
prompt is estimated, and the largest gap compared with three ordinary steps and one slice.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from chat_load import VOCABULARY
from peer import find_model, running_peer

from inference.protocol.replicas import RuntimeProfile

MODEL = "smollm2-135m-instruct"
NUM_STREAMS = 4
WARM_TOKENS = 10
LONG_WORDS = 3000


@dataclass(slots=True)
class Stream:
    """When the tokens of one request came; seconds."""

    times: list[float] = field(default_factory=list)

    def gaps(self, start: float, end: float) -> list[float]:
        """List the gaps between tokens of which some part lies between two moments."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return [later - before for before, later in pairs if later > start and before < end]


@dataclass(frozen=True, slots=True)
class Gap:
    """What the four streams saw; seconds."""

    ordinary: float
    largest: float
    long_ttft: float
    num_prompt_tokens: int


async def follow(url: str, key: str, words: int, max_tokens: int, stream: Stream) -> int:
    """Stream one chat, noting when each token comes; gives the number of prompt tokens."""
    address = urlsplit(url)
    text = " ".join(random.choices(VOCABULARY, k=words))
    body = json.dumps(
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": f"Write a long story about: {text}."}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    reader, writer = await asyncio.open_connection(address.hostname, address.port or 80)
    writer.write(
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    num_prompt_tokens = 0
    answer = b""
    while line := await reader.readline():
        answer = line or answer
        if line.startswith(b"data: {"):
            chunk = json.loads(line[6:])
            if chunk.get("usage"):
                num_prompt_tokens = chunk["usage"]["prompt_tokens"]
            if chunk.get("choices") and chunk["choices"][0]["delta"].get("content"):
                stream.times.append(time.perf_counter())
    writer.close()
    if not stream.times:
        raise SystemExit(f"{url} gave no token; its last line was {answer!r:.500}")
    return num_prompt_tokens


async def measure(url: str, key: str, max_tokens: int) -> Gap:
    """Run the four streams and the long prompt once."""
    streams = [Stream() for _ in range(NUM_STREAMS)]
    tasks = [asyncio.create_task(follow(url, key, 10, max_tokens, each)) for each in streams]
    while min(len(each.times) for each in streams) < WARM_TOKENS:
        await asyncio.sleep(0.005)
    sent = time.perf_counter()
    late = Stream()
    num_prompt_tokens = await follow(url, key, LONG_WORDS, 4, late)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    warm = [gap for each in streams for gap in each.gaps(each.times[2], sent)]
    held = [gap for each in streams for gap in each.gaps(sent, late.times[0])]
    return Gap(statistics.median(warm), max(held), late.times[0] - sent, num_prompt_tokens)


def describe(name: str, gap: Gap) -> None:
    """Print what one server did."""
    print(
        f"{name}: ordinary gap {gap.ordinary * 1e3:.0f} ms, largest {gap.largest * 1e3:.0f} ms "
        f"({gap.largest / gap.ordinary:.1f} ordinary steps); the prompt of "
        f"{gap.num_prompt_tokens} tokens took {gap.long_ttft:.1f} s"
    )


def main() -> None:
    """Run the rounds; print each, and last the median against the bound."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--home", type=Path, default=Path("var"))
    parser.add_argument("--max-tokens", type=int, default=900)
    arguments = parser.parse_args()
    key = (arguments.home / "demo-api-key").read_text().strip()
    model, chunk = find_model(arguments.home), RuntimeProfile().prefill_chunk
    shares = []
    for _ in range(arguments.rounds):
        with running_peer(model, slots=8, context_length=8192) as address:
            describe("llama-server", asyncio.run(measure(address, "none", arguments.max_tokens)))
        ours = asyncio.run(measure(arguments.url, key, arguments.max_tokens))
        describe("llamero", ours)
        num_slices = -(-ours.num_prompt_tokens // chunk)
        slice_seconds = max(0.0, ours.long_ttft / num_slices - ours.ordinary)
        shares.append(ours.largest / (3 * ours.ordinary + slice_seconds))
    print(
        f"llamero: largest gap / (3 ordinary steps + one slice of {chunk} tokens): "
        f"{statistics.median(shares):.2f} (at most 1 is promised)"
    )


if __name__ == "__main__":
    main()
