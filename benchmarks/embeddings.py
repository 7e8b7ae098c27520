"""How many inputs per second does Llamero embed beside llama-server? Both in turn, in one run.

Usage, beside a running ``make run``:

    python benchmarks/embeddings.py [--rounds 3] [--url http://127.0.0.1:8000] [--home var]
        [--only short-16]

Workloads: short (8 words) and long (200 words) texts, one input per request, from 1 and 16
clients; and batches of 64 short texts from one client. Both get the same model file, all-MiniLM.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from peer import running_peer

MODEL = "all-minilm-l6-v2"
_WORDS = [word for word in Path(__file__).read_text().split() if word.isalpha()]
_HOST = "127.0.0.1"


@dataclass(frozen=True)
class Load:
    """Requests of one shape, from so many clients at once."""

    clients: int
    requests: int
    words: int
    inputs: int = 1


LOADS = {
    "short-1": Load(clients=1, requests=60, words=8),
    "short-16": Load(clients=16, requests=320, words=8),
    "long-1": Load(clients=1, requests=16, words=200),
    "long-16": Load(clients=16, requests=48, words=200),
    "batch-1": Load(clients=1, requests=6, words=8, inputs=64),
}


class Client:
    """One kept connection, as a real client has."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def embed(self, inputs: list[str]) -> int:
        """Post one request; gives how many vectors came."""
        if self._writer is None or self._writer.is_closing():
            self._reader, self._writer = await asyncio.open_connection(_HOST, self._port)
        assert self._reader is not None
        fields = {"model": MODEL, "input": inputs, "encoding_format": "base64"}
        body = json.dumps(fields).encode()
        head = (
            f"POST /v1/embeddings HTTP/1.1\r\nHost: {_HOST}\r\nAuthorization: Bearer {self._key}"
            f"\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answer.split("content-length:")[1].split("\r\n")[0])
        document = json.loads(await self._reader.readexactly(length))
        if " 200 " not in answer.split("\r\n")[0]:
            raise RuntimeError(document)
        if "connection: close" in answer:
            self._writer.close()
        return len(document["data"])

    def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()


async def measure(load: Load, port: int, key: str, seed: int) -> float:
    """Give inputs per second. The texts of a run are new, those of both sides the same."""
    draw = random.Random(seed)
    texts = [
        [" ".join(draw.choices(_WORDS, k=load.words)) for _ in range(load.inputs)]
        for _ in range(load.requests)
    ]
    waiting = iter(texts)
    clients = [Client(port, key) for _ in range(load.clients)]
    for client in clients:
        await client.embed(["warm"])

    async def work(client: Client) -> int:
        return sum([await client.embed(inputs) for inputs in waiting])

    started = time.perf_counter()
    counts = await asyncio.gather(*map(work, clients))
    seconds = time.perf_counter() - started
    for client in clients:
        client.close()
    return sum(counts) / seconds


def find_model(home: Path) -> Path:
    """Find the embedding model in the store of a Llamero home: its smallest file."""
    return min((home / "models").glob("*/*"), key=lambda path: path.stat().st_size)


def main() -> None:
    """Run the rounds and print the median ratio of each workload."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--home", type=Path, default=Path("var"))
    parser.add_argument("--only", choices=LOADS)
    arguments = parser.parse_args()
    key = (arguments.home / "demo-api-key").read_text().strip()
    ours_port = int(arguments.url.rsplit(":", 1)[1])
    chosen = {n: load for n, load in LOADS.items() if arguments.only in (None, n)}
    ratios: dict[str, list[float]] = {name: [] for name in chosen}
    model = find_model(arguments.home)
    with running_peer(model, slots=16, context_length=512, pooling="mean") as peer:
        peer_port = int(peer.rsplit(":", 1)[1])
        for number in range(arguments.rounds):
            for name, load in chosen.items():
                seed = int(time.time()) + number
                theirs = asyncio.run(measure(load, peer_port, "none", seed))
                ours = asyncio.run(measure(load, ours_port, key, seed))
                ratios[name].append(ours / theirs)
                print(f"{name}: llama-server {theirs:.1f}, llamero {ours:.1f} inputs/s", flush=True)
    for name, found in ratios.items():
        print(f"{name}: llamero/llama-server {statistics.median(found):.2f}")


if __name__ == "__main__":
    main()
