"""A response whose request is sent twice under one idempotency key."""

from typing import Any

import pytest

from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FakeDispatcher
from tests.llamero.api.responses.reading import accumulate, events_of, response_of, types_of

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


async def test_a_stream_that_is_not_stored_is_told_again_to_its_key_alone(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    asked = asked | {"stream": True, "store": False}
    first, second = [events_of(await post(URL, asked, headers=KEYED)) for _ in range(2)]
    assert first[:-1] == second[:-1]
    assert accumulate(first).output == accumulate(second).output
    assert len(dispatcher.jobs) == 1
    [(_, run)] = dispatcher.kept
    assert (await get(f"{URL}/{first[0]['response']['id']}")).status == 404
    assert (await get(f"/v1/runs/{run}/events")).status == 404
