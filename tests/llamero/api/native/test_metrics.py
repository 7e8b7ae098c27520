"""GET /metrics: text that Prometheus reads, for whom the numbers are."""

import re
from typing import Any

import msgspec
import pytest
from pytest_django import Settings

from inference.protocol.replicas import EngineStats, ReplicaStatus
from tests.llamero.api.asgi_client import Answer, get
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.fakes import FakeDispatcher, make_status

SAMPLE = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^}]*\})? -?[0-9][0-9.e+-]*")


def status_with(replica: str, **stats: Any) -> ReplicaStatus:
    found = make_status("smol")
    return msgspec.structs.replace(
        found, replica=replica, started_at=1700000000.5, stats=EngineStats(**stats)
    )


def read(answer: Answer) -> dict[str, float]:
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4"
    text = answer.body.decode()
    assert text.endswith("\n")
    lines = text.splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in samples)
    types = [line.split()[2:] for line in lines if line.startswith("# TYPE ")]
    assert len({name for name, _ in types}) == len(types)
    counters = {name for name, kind in types if kind == "counter"} - {"llamacpp:n_tokens_max"}
    assert all(name.endswith("_total") for name in counters)
    assert {name for name, _ in types} == {
        line.partition(" ")[0].partition("{")[0] for line in samples
    }
    pairs = [line.rsplit(" ", 1) for line in samples]
    assert len(dict(pairs)) == len(pairs)
    return {name: float(value) for name, value in pairs}


async def test_a_fresh_server_has_numbers(dispatcher: FakeDispatcher) -> None:
    for statuses in ((), dispatcher.statuses):
        dispatcher.statuses = statuses
        assert read(await get("/metrics"))["llamacpp:predicted_tokens_seconds"] == 0


async def test_replicas_are_added_up_in_llama_servers_names(dispatcher: FakeDispatcher) -> None:
    dispatcher.statuses = (
        status_with("a", num_prompt_tokens=10, num_cached_tokens=3, num_decoded_tokens=8,
                    decode_seconds=2.0, num_steps=5, longest_sequence=30, num_running=1),
        status_with("b", num_prompt_tokens=5, num_decoded_tokens=4, decode_seconds=1.0,
                    longest_sequence=40, num_running=2),
    )  # fmt: skip
    dispatcher.num_queued = 6
    answer = await get("/m/smol/metrics")
    numbers = read(answer)
    expected = {
        "prompt_tokens_total": 15,
        "prompt_tokens_cached_total": 3,
        "tokens_predicted_total": 12,
        "tokens_predicted_seconds_total": 3,
        "predicted_tokens_seconds": 4,
        "n_decode_total": 5,
        "n_tokens_max": 40,
        "requests_processing": 3,
        "requests_deferred": 6,
    }
    assert {name: numbers[f"llamacpp:{name}"] for name in expected} == expected
    assert answer.headers["process-start-time-unix"] == "1700000000"


async def test_each_replica_has_its_own_counters(dispatcher: FakeDispatcher) -> None:
    dispatcher.statuses = (
        status_with(
            "a", num_decoded_tokens=8, num_jobs_done=2, num_sharing=6, num_shared_tokens=512
        ),
    )
    numbers = read(await get("/metrics"))
    labels = 'model="smol",replica="a",node="here"'
    assert numbers[f"llamero_tokens_predicted_total{{{labels}}}"] == 8
    assert numbers[f'llamero_jobs_total{{{labels},outcome="done"}}'] == 2
    assert numbers[f"llamero_replica_ready{{{labels}}}"] == 1
    assert numbers[f"llamero_jobs_sharing{{{labels}}}"] == 6
    assert numbers[f"llamero_shared_tokens{{{labels}}}"] == 512
    assert numbers['llamero_jobs_waiting{model="mini"}'] == 0


async def test_guesses_are_counted_by_their_place(dispatcher: FakeDispatcher) -> None:
    dispatcher.statuses = (
        status_with("a", accepted_by_position=(3, 1)),
        status_with("b", accepted_by_position=(2,)),
    )
    numbers = read(await get("/metrics"))
    name = "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"
    assert [numbers[f'{name}{{position="{at}"}}'] for at in (0, 1)] == [5, 1]


async def test_a_key_reads_what_it_may_use() -> None:
    assert "smol" not in (await get("/metrics", key=LIMITED_KEY)).body.decode()
    assert (await get("/metrics?model=smol", key=LIMITED_KEY)).status == 404
    for key in (None, "wrong"):
        assert (await get("/metrics", key=key)).status == 401


@pytest.mark.parametrize("token", ["scrape-me", "schlüssel"])
async def test_the_operators_token_reads_all(settings: Settings, token: str) -> None:
    settings.METRICS_TOKEN = "scrape-me"
    answer = await get("/metrics", key=token)
    assert answer.status == (200 if token == "scrape-me" else 401)
    assert (await get("/slots", key="scrape-me")).status == 401


async def test_no_label_holds_a_key(dispatcher: FakeDispatcher) -> None:
    assert b"key:9" not in (await get("/metrics")).body
