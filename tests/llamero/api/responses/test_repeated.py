"""A response whose request is sent twice under one idempotency key."""

from typing import Any

import pytest

from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import FakeDispatcher
from tests.llamero.api.responses.reading import events_of, response_of, types_of

pytestmark = pytest.mark.usefixtures("rows")
URL = "/v1/responses"
KEYED = {"idempotency-key": "order-42"}


@pytest.mark.parametrize("background", [False, True])
async def test_it_is_the_same_response(
    dispatcher: FakeDispatcher, asked: dict[str, Any], background: bool
) -> None:
    asked = asked | {"background": background}
    first, second = [response_of(await post(URL, asked, headers=KEYED)) for _ in range(2)]
    assert first.id == second.id
    assert len(dispatcher.jobs) == 1


async def test_its_stream_is_told_again(dispatcher: FakeDispatcher, asked: dict[str, Any]) -> None:
    asked = asked | {"stream": True}
    first, second = await post(URL, asked, headers=KEYED), await post(URL, asked, headers=KEYED)
    assert second.headers["idempotent-replayed"] == "true"
    assert types_of(events_of(first)) == types_of(events_of(second))
    ids = [events_of(answer)[-1]["response"]["id"] for answer in (first, second)]
    assert ids[0] == ids[1]
    assert len(dispatcher.jobs) == 1


async def test_a_stream_that_is_not_stored_cannot_be_told_again(asked: dict[str, Any]) -> None:
    answer = await post(URL, asked | {"stream": True, "store": False}, headers=KEYED)
    assert (answer.status, answer.error["param"]) == (400, "Idempotency-Key")
