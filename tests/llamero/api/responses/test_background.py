"""Responses that go on without their clients: told again, stopped, ended once by anybody."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from inference.protocol.errors import ErrorCode
from inference.protocol.events import Done, Event, Failed, FinishReason, Progress, Started, Tokens
from llamero.api.responses import settling
from llamero.api.responses.settling import settle_responses
from llamero.api.run import fail_open_runs
from llamero.conversations.models import ResponseState, StoredResponse
from llamero.conversations.services import remove_unused_responses
from tests.llamero.api.asgi_client import get, post, start
from tests.llamero.api.fakes import FakeDispatcher, say
from tests.llamero.api.responses.reading import accumulate, events_of, response_of, types_of

pytestmark = pytest.mark.usefixtures("rows")
URL = "/v1/responses"


@pytest.fixture
def later(asked: dict[str, Any]) -> dict[str, Any]:
    """A request that nobody waits for."""
    return asked | {"background": True}


def speak_twice(job: Any) -> list[Event]:
    """Make the events of a job whose replica is lost once."""
    told = [Tokens("Hel", (1,)), Tokens("lo", (2,))]
    end = Done(FinishReason.EOS, 5, 0, 3)
    return [Started(1, 0), Progress(2, 5), told[0], Started(2, 0), told[1], end]


async def read_row() -> StoredResponse:
    return await StoredResponse.objects.aget()


async def test_it_is_answered_later(dispatcher: FakeDispatcher, later: dict[str, Any]) -> None:
    goes_on = asyncio.Event()
    dispatcher.script = lambda job: [Started(1, 0), goes_on, *say("Hel", "lo")]
    response = response_of(await post(URL, later))
    assert (response.status, response.background, response.output) == ("queued", True, [])
    url = f"{URL}/{response.id}"
    assert response_of(await get(url)).status == "in_progress"
    assert (await read_row()).state == ResponseState.IN_PROGRESS
    assert dispatcher.jobs[0].is_durable
    early = await post(URL, later | {"previous_response_id": response.id})
    assert early.error["code"] == "response_in_progress"
    goes_on.set()
    ended = response_of(await get(url))
    assert (ended.status, ended.output_text) == ("completed", "Hello")
    assert (await read_row()).state == ResponseState.COMPLETED
    dispatcher.jobs.clear()
    assert response_of(await get(url)) == ended


@pytest.mark.parametrize("is_ended", [False, True])
async def test_its_stream_goes_on_after_any_event(
    dispatcher: FakeDispatcher, later: dict[str, Any], is_ended: bool
) -> None:
    dispatcher.script = speak_twice
    events = events_of(await post(URL, later | {"stream": True}))
    assert types_of(events)[:3] == ["created", "queued", "in_progress"]
    response = accumulate(events)
    assert response.output_text == "Hello"
    if is_ended:
        dispatcher.jobs.clear()
    url = f"{URL}/{response.id}?stream=true"
    for number in range(len(events)):
        rest = await get(f"{url}&starting_after={number}")
        assert events_of(rest) == events[number + 1 :]
    assert events_of(await get(url)) == events
    for place in ("900", "x"):
        wrong = await get(f"{url}&starting_after={place}")
        assert (wrong.status, wrong.error["param"]) == (400, "starting_after")


async def test_a_client_that_leaves_costs_nothing(
    dispatcher: FakeDispatcher, later: dict[str, Any]
) -> None:
    goes_on = asyncio.Event()
    dispatcher.script = lambda job: [*say("Hel")[:-1], goes_on, *say("lo")[1:]]
    exchange = start("POST", URL, later | {"stream": True})
    await exchange.wait_for(b"Hel")
    await exchange.hang_up()
    assert not dispatcher.streams[0].is_cancelled
    goes_on.set()
    row = await read_row()
    assert response_of(await get(f"{URL}/{row.id}")).output_text == "Hello"


async def test_a_server_that_stops_ends_the_stream_alone(
    dispatcher: FakeDispatcher, later: dict[str, Any]
) -> None:
    goes_on = asyncio.Event()
    dispatcher.script = lambda job: [*say("Hel")[:-1], goes_on, *say("lo")[1:]]
    exchange = start("POST", URL, later | {"stream": True})
    await exchange.wait_for(b"Hel")
    fail_open_runs()
    events = events_of(await exchange.finish())
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "stream_detached")
    row = await read_row()
    assert row.state == ResponseState.IN_PROGRESS
    goes_on.set()
    number = events[-2]["sequence_number"]
    rest = events_of(await get(f"{URL}/{row.id}?stream=true&starting_after={number}"))
    assert accumulate(events[:-1] + rest).output_text == "Hello"


async def test_one_is_cancelled_with_what_it_said(
    dispatcher: FakeDispatcher, later: dict[str, Any]
) -> None:
    dispatcher.script = lambda job: [*say("Hel")[:-1], asyncio.Event()]
    response = response_of(await post(URL, later))
    url = f"{URL}/{response.id}"
    cancelled = response_of(await post(f"{url}/cancel"))
    assert dispatcher.cancelled == [dispatcher.jobs[0].id]
    assert (cancelled.status, cancelled.output_text, cancelled.error) == ("cancelled", "Hel", None)
    assert response_of(await post(f"{url}/cancel")) == cancelled
    assert response_of(await get(url)) == cancelled
    told = events_of(await get(f"{url}?stream=true"))
    assert types_of(told)[-1] == "failed"
    assert told[-1]["response"]["status"] == "cancelled"
    followed = await post(URL, later | {"previous_response_id": response.id})
    assert followed.status == 200


async def test_one_whose_replica_stands_still_is_cancelled(
    dispatcher: FakeDispatcher, later: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamero.api.responses.stored.CANCEL_SECONDS", 0.0)
    dispatcher.script = lambda job: [*say("Hel")[:-1], asyncio.Event()]
    response = response_of(await post(URL, later))

    async def ignore(jobs: Any) -> bool:
        return True

    monkeypatch.setattr(dispatcher, "cancel_jobs", ignore)
    cancelled = response_of(await post(f"{URL}/{response.id}/cancel"))
    assert (cancelled.status, cancelled.output_text) == ("cancelled", "Hel")


async def test_only_what_goes_on_alone_is_cancelled(asked: dict[str, Any]) -> None:
    response = response_of(await post(URL, asked))
    assert (await post(f"{URL}/{response.id}/cancel")).status == 400


async def test_what_is_deleted_is_stopped(
    dispatcher: FakeDispatcher, later: dict[str, Any]
) -> None:
    dispatcher.script = lambda job: [*say("Hel")[:-1], asyncio.Event()]
    response = response_of(await post(URL, later))
    assert (await start("DELETE", f"{URL}/{response.id}").finish()).status == 200
    assert dispatcher.cancelled == [dispatcher.jobs[0].id]


async def test_one_deleted_under_its_reader_ends_with_an_error(
    dispatcher: FakeDispatcher, later: dict[str, Any]
) -> None:
    goes_on = asyncio.Event()
    dispatcher.script = lambda job: [*say("Hel")[:-1], goes_on, *say("lo")[1:]]
    exchange = start("POST", URL, later | {"stream": True})
    await exchange.wait_for(b"Hel")
    await StoredResponse.objects.all().adelete()
    goes_on.set()
    events = events_of(await exchange.finish())
    assert types_of(events)[-1] == "failed"


async def test_one_that_is_lost_says_so(dispatcher: FakeDispatcher, later: dict[str, Any]) -> None:
    response = response_of(await post(URL, later))
    dispatcher.jobs.clear()
    lost = response_of(await get(f"{URL}/{response.id}"))
    assert lost.status == "failed"
    assert lost.error is not None
    assert lost.error.code == "server_error"
    told = events_of(await get(f"{URL}/{response.id}?stream=true"))
    assert types_of(told) == ["created", "queued", "in_progress", "failed"]


class FakeRedis:
    """What the control worker reads of jobs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, told: dict[str, list[Event]]) -> None:
        def tell_states(redis: Any, jobs: list[str]) -> list[str]:
            return ["done" if told[job] else "" for job in jobs]

        monkeypatch.setattr(settling, "read_states", tell_states)
        monkeypatch.setattr(settling, "read_history", lambda redis, job: told[job])


async def test_the_control_worker_ends_what_nobody_reads(
    dispatcher: FakeDispatcher, later: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [response_of(await post(URL, later)).id for _ in range(3)]
    one, lost, broken = (job.id for job in dispatcher.jobs)
    failed = Failed(ErrorCode.ENGINE_FAILED, "It broke.")
    told: dict[str, list[Event]] = {one: say("Hel", "lo"), lost: [], broken: [failed]}
    redis: Any = FakeRedis(monkeypatch, told)
    await sync_to_async(settle_responses)(redis)
    dispatcher.jobs.clear()
    statuses = [response_of(await get(f"{URL}/{one}")).status for one in ids]
    assert statuses == ["completed", "failed", "failed"]
    await sync_to_async(settle_responses)(redis)


async def test_an_end_is_written_once(dispatcher: FakeDispatcher, later: dict[str, Any]) -> None:
    response = response_of(await post(URL, later))
    row = await read_row()
    ending = settling.Ending.of(row)
    first = await sync_to_async(ending.write)(say("Hello"))
    second = await sync_to_async(ending.write)([Failed(ErrorCode.ENGINE_LOST, "Lost.")])
    assert second == first
    assert response_of(await get(f"{URL}/{response.id}")).output_text == "Hello"


async def test_what_nobody_uses_is_forgotten(
    dispatcher: FakeDispatcher, asked: dict[str, Any], later: dict[str, Any]
) -> None:
    old = timezone.now() - timedelta(days=31)
    first = response_of(await post(URL, asked)).id
    unused = response_of(await post(URL, asked)).id
    running = response_of(await post(URL, later)).id
    await StoredResponse.objects.aupdate(used_at=old)
    await post(URL, asked | {"previous_response_id": first})
    before = timezone.now() - timedelta(days=30)
    assert await sync_to_async(remove_unused_responses)(before=before) == 1
    left = {row.id async for row in StoredResponse.objects.all()}
    assert {first, running} <= left
    assert unused not in left
