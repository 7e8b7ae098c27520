"""What the dashboard makes of heartbeats."""

import pytest
from pytest_django import Settings

from inference.protocol.replicas import EngineStats, ReplicaState, ReplicaStatus
from inference.relay.connect import connect
from inference.relay.registry import ReplicaRegistry
from llamero.console import live
from llamero.console.live import Load, read_live, sum_up


def make_status(replica: str, **stats: float) -> ReplicaStatus:
    return ReplicaStatus(
        replica=replica,
        deployment="smol",
        node="n",
        state=ReplicaState.READY,
        num_slots=4,
        stats=EngineStats(**stats),  # type: ignore[arg-type]
        memory_bytes=10,
    )


def test_replicas_of_a_deployment_add_up() -> None:
    load = sum_up(
        [
            make_status("a", num_running=2, num_decoded_tokens=100, decode_seconds=2.0),
            make_status("b", num_running=1, num_decode_steps=10, num_batch_sequences=35),
        ],
        num_waiting=5,
    )

    assert (load.num_ready, load.num_slots, load.num_running, load.num_waiting) == (2, 8, 3, 5)
    assert (load.num_tokens, load.mean_batch, load.memory_bytes) == (100, 3.5, 20)


def test_no_replicas_are_all_zeros() -> None:
    assert sum_up([], 0) == Load()


def test_heartbeats_are_read_from_the_server(valkey_url: str, settings: Settings) -> None:
    live._client.cache_clear()
    registry = ReplicaRegistry(connect(valkey_url))
    registry.beat(make_status("a", num_running=2))
    try:
        found = read_live()
    finally:
        registry.remove("a")

    assert found is not None
    assert found.load_of("smol").num_running == 2
    assert found.load_of("other") == Load()


def test_nothing_is_known_while_the_server_is_away(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    live._client.cache_clear()
    try:
        assert read_live() is None
    finally:
        live._client.cache_clear()
    assert "cannot be reached" in caplog.text
