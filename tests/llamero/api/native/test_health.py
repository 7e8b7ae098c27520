"""GET /health: for anybody, and it says when to ask again."""

import time
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from inference.protocol.errors import ErrorCode
from inference.protocol.replicas import ReplicaState
from llamero.api.errors import RETRY_SECONDS
from llamero.dispatch.wakening import HELP_SECONDS
from models_registry.models import DeploymentState
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import Answer, get
from tests.llamero.api.fakes import FakeDispatcher, engine_error, make_status


def refusal(answer: Answer) -> tuple[str, int]:
    assert (answer.status, answer.error["type"]) == (503, "unavailable_error")
    return answer.error["message"], int(answer.headers["retry-after"])


async def test_it_is_public() -> None:
    for url in ("/health", "/v1/health", "/m/smol/health"):
        answer = await get(url, key=None)
        assert (answer.status, answer.json()) == (200, {"status": "ok"})


async def test_it_tells_how_long_loading_takes(dispatcher: FakeDispatcher) -> None:
    status = make_status("smol", ReplicaState.LOADING)
    began = {"started_at": time.time() - 10}
    for fields, least, most in (
        (began | {"progress": 0.5}, 9, 11),
        (began | {"progress": 0.999}, 1, 1),
        (began | {"progress": 0.001}, 60, 60),
        (began | {"progress": 0.0}, RETRY_SECONDS, RETRY_SECONDS),
        ({"progress": 0.5}, RETRY_SECONDS, RETRY_SECONDS),
    ):
        dispatcher.statuses = (msgspec.structs.replace(status, **fields),)
        message, seconds = refusal(await get("/health", key=None))
        assert message == "Loading model"
        assert least <= seconds <= most


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (DeploymentState.LOADING, ("Loading model", RETRY_SECONDS)),
        (DeploymentState.READY, ("Loading model", RETRY_SECONDS)),
        (DeploymentState.FAILED, ("No model is ready", HELP_SECONDS)),
        (DeploymentState.PENDING, ("No model is ready", HELP_SECONDS)),
    ],
)
async def test_it_tells_whether_a_replica_may_be_expected(
    dispatcher: FakeDispatcher, served: list[ServedModel], state: DeploymentState, expected: Any
) -> None:
    dispatcher.statuses = ()
    served[:] = [replace(one, state=state.value) for one in served]
    assert refusal(await get("/health", key=None)) == expected


async def test_a_failed_replica_is_no_hope(dispatcher: FakeDispatcher) -> None:
    dispatcher.statuses = (make_status("smol", ReplicaState.FAILED),)
    assert refusal(await get("/health", key=None)) == ("No model is ready", HELP_SECONDS)


async def test_a_model_that_sleeps_can_be_used(
    dispatcher: FakeDispatcher, served: list[ServedModel]
) -> None:
    dispatcher.statuses = ()
    served[0] = replace(served[0], state=DeploymentState.SLEEPING.value)
    assert (await get("/health", key=None)).status == 200


async def test_each_deployment_of_a_model_counts(
    dispatcher: FakeDispatcher, served: list[ServedModel]
) -> None:
    first = served[0]
    served[:] = [replace(first, routes=(first, replace(first, deployment="second")))]
    dispatcher.statuses = (make_status("second"),)
    assert (await get("/health", key=None)).status == 200
    assert len((await get(f"/slots?model={first.id}")).json()) == 2
    assert b'replica="second-1"' in (await get("/metrics")).body


async def test_it_knows_a_lost_broker(dispatcher: FakeDispatcher) -> None:
    dispatcher.facts_error = engine_error(ErrorCode.BROKER_UNAVAILABLE)
    refusal(await get("/health", key=None))
