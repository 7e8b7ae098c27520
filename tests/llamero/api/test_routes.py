"""Who answers: a deployment by its share, or the model that stands in; headers tell it."""

from dataclasses import replace
from typing import Any

import pytest

from inference.protocol.replicas import ModelKind
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.fakes import FakeDispatcher, make_served

HI = {"model": "ab", "messages": [{"role": "user", "content": "Hi"}]}


def make_routes(*states: str, **changes: Any) -> ServedModel:
    """Make a model whose deployments a, b… are in these states."""
    routes = tuple(
        make_served("ab", pk=2, deployment=name, state=state, version=number, **changes)
        for number, (name, state) in enumerate(zip("abc", states, strict=False), start=1)
    )
    return replace(routes[0], routes=routes)


async def ask(**headers: str) -> Any:
    """Send a chat, as one who has a conversation if it is named."""
    return await post("/v1/chat/completions", HI, headers=headers)


async def test_headers_tell_the_deployment_and_its_version(
    served: list[ServedModel], dispatcher: FakeDispatcher
) -> None:
    served.append(make_routes("failed", "ready"))

    answer = await ask()

    assert answer.headers["x-llamero-deployment"] == "b"
    assert answer.headers["x-llamero-version"] == "2"
    assert "x-llamero-stands-in-for" not in answer.headers
    assert dispatcher.jobs[0].deployment == "b"


async def test_conversations_are_shared_out_and_stay(served: list[ServedModel]) -> None:
    served.append(make_routes("ready", "ready"))

    first = [(await ask(**{"x-conversation-id": f"c{n}"})).headers for n in range(12)]
    again = [(await ask(**{"x-conversation-id": f"c{n}"})).headers for n in range(12)]
    without = {(await ask()).headers["x-llamero-deployment"] for _ in range(6)}

    chosen = [headers["x-llamero-deployment"] for headers in first]
    assert set(chosen) == {"a", "b"}
    assert chosen == [headers["x-llamero-deployment"] for headers in again]
    assert len(without) == 1


@pytest.mark.parametrize("state", ["failed", "pending", "stopped"])
async def test_another_model_stands_in(
    served: list[ServedModel], dispatcher: FakeDispatcher, state: str
) -> None:
    served += [make_routes(state, fallback="spare"), make_served("spare", pk=4, state="ready")]

    answer = await ask()

    assert answer.json()["model"] == "spare"
    assert answer.headers["x-llamero-stands-in-for"] == "ab"
    assert dispatcher.jobs[0].deployment == "spare"


@pytest.mark.parametrize(
    "spare",
    [
        make_served("spare", pk=4, state="failed"),
        make_served("spare", pk=4, state="ready", kind=ModelKind.EMBEDDING),
        make_served("other", pk=4, state="ready"),
    ],
    ids=["failed too", "of another kind", "gone"],
)
async def test_one_that_cannot_help_leaves_the_model_to_itself(
    served: list[ServedModel], dispatcher: FakeDispatcher, spare: ServedModel
) -> None:
    served += [make_routes("failed", fallback="spare"), spare]

    answer = await ask()

    assert answer.headers["x-llamero-deployment"] == "a"
    assert dispatcher.jobs[0].deployment == "a"


async def test_a_key_that_may_not_use_the_other_model_is_not_sent_there(
    served: list[ServedModel], dispatcher: FakeDispatcher
) -> None:
    served += [make_routes("failed", fallback="spare"), make_served("spare", pk=4, state="ready")]

    await post("/v1/chat/completions", HI, key=LIMITED_KEY)

    assert dispatcher.jobs[0].deployment == "a"


async def test_a_model_is_described_as_itself(served: list[ServedModel]) -> None:
    served += [make_routes("failed", fallback="spare"), make_served("spare", pk=4, state="ready")]

    answer = await get("/v1/models/ab")

    assert answer.json()["id"] == "ab"
