"""What llama-server tells in the events of a response: progress, and the pace."""

from typing import Any

import pytest

from inference.protocol.events import (
    Done,
    Event,
    FinishReason,
    Pace,
    Progress,
    Started,
    Timings,
    Tokens,
)
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FakeDispatcher
from tests.llamero.api.responses.reading import accumulate, types_of

pytestmark = pytest.mark.usefixtures("rows")
URL = "/v1/responses"
WANTED = {"stream": True, "timings_per_token": True, "return_progress": True}


def speak(job: Any) -> list[Event]:
    paced = [Pace(Timings(30.0, 0.0, 3)), Tokens("Hel", (1,))]
    more = [Pace(Timings(30.0, 10.0, 3)), Tokens("lo", (2,))]
    end = Done(FinishReason.EOS, 5, 2, 2, timings=Timings(30.0, 10.0, 3))
    return [Started(1, 2), Progress(4, 5, 20.0), Progress(5, 5, 30.0), *paced, *more, end]


async def test_progress_and_pace_are_told(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    dispatcher.script = speak
    for url, body in ((URL, asked), ("/responses", {"input": "Hi", "store": False})):
        events = (await post(url, body | WANTED)).chunks
        told = [one["prompt_progress"] for one in events if "prompt_progress" in one]
        assert [one["processed"] for one in told] == [2, 4, 5]
        deltas = [one for one in events if one["type"] == "response.output_text.delta"]
        assert [one["timings"]["predicted_n"] for one in deltas] == [1, 2]
        assert events[-1]["timings"]["prompt_n"] == 3
        assert [one["sequence_number"] for one in events] == list(range(len(events)))
        assert accumulate(events).output_text == "Hello"


async def test_nothing_is_told_that_nobody_asked_for(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    dispatcher.script = speak
    events = (await post(URL, asked | {"stream": True})).chunks
    assert types_of(events).count("in_progress") == 1
    assert not any("timings" in one or "prompt_progress" in one for one in events)


async def test_a_stream_is_told_again_with_all_of_it(
    dispatcher: FakeDispatcher, asked: dict[str, Any]
) -> None:
    dispatcher.script = speak
    events = (await post(URL, asked | WANTED | {"background": True})).chunks
    url = f"{URL}/{events[0]['response']['id']}?stream=true"
    assert [one["prompt_progress"]["processed"] for one in events if "prompt_progress" in one]
    again = (await get(url)).chunks
    assert again[:-1] == events[:-1]
    assert (await get(f"{url}&starting_after=3")).chunks[:-1] == events[4:-1]
