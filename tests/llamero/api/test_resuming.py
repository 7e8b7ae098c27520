"""A stream that is cut anywhere goes on as if it had not been."""

import asyncio
import json
import random
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from openai._streaming import SSEDecoder

from inference.protocol.errors import ErrorCode
from inference.protocol.events import (
    Candidate,
    Done,
    Event,
    Failed,
    FinishReason,
    Progress,
    PromptLogprobs,
    Started,
    TokenLogprob,
    Tokens,
)
from llamero.api import sse
from llamero.api.numbering import NumberedChunks, read_place
from llamero.api.openai.chunks import ChatDialect, OpenAIChunks
from llamero.api.openai.envelope import Envelope
from llamero.api.resuming import KeptRun
from llamero.api.run import ChoiceEvent, fail_open_runs
from llamero.dispatch.dispatcher import Cancellation
from llamero.errors import InvalidValue
from tests.llamero.api.asgi_client import Answer, get, post, start
from tests.llamero.api.conftest import LIMITED_KEY
from tests.llamero.api.fakes import FakeDispatcher, engine_error, say

RESUMABLE = {"X-Llamero-Resumable": "true"}
CHAT = {"model": "smol", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", CHAT | {"stream_options": {"include_usage": True}}),
    "text": (
        "/v1/completions",
        {"model": "smol", "prompt": "Once", "stream": True, "echo": True, "logprobs": 1},
    ),
    "native": (
        "/completion",
        {
            "prompt": "Once",
            "stream": True,
            "seed": 7,
            "logit_bias": [["a", False], [5, 1.5]],
            "return_progress": True,
            "dry_sequence_breakers": ["\n"],
            "lora": [],
        },
    ),
}


def judge(text: str) -> TokenLogprob:
    chosen = Candidate(ord(text[0]), text, -0.5)
    return TokenLogprob(chosen, (chosen,))


def speak(job: Any) -> list[Event]:
    """Make the events of a job whose replica is lost once."""
    logprobs = job.num_logprobs is not None
    told = [Tokens(text, (1,), (judge(text),) if logprobs else ()) for text in "a b\nc"]
    prompt = tuple(map(judge, "Once"))
    judged = [PromptLogprobs(0, prompt[:2]), PromptLogprobs(2, prompt[2:])]
    return [
        Started(2, 1),
        Progress(2, 4),
        *(judged[:1] if job.num_prompt_logprobs is not None else []),
        Started(3, 0),
        *(judged if job.num_prompt_logprobs is not None else []),
        *told,
        Tokens("", (2,)),
        Done(FinishReason.EOS, 4, 1, 6),
    ]


def events_of(answer: Answer) -> list[str]:
    """Give the numbered events of a stream, without comments."""
    assert answer.status == 200, answer.body
    lines = answer.body.decode().split("\n")
    return "\n".join(line for line in lines if line[:1] != ":").split("\n\n")[:-1]


def id_of(event: str) -> str:
    return event.partition("\n")[0].removeprefix("id: ")


async def resume(run: str, last: str, **options: Any) -> Answer:
    return await get(f"/v1/runs/{run}/events", headers={"Last-Event-ID": last}, **options)


@pytest.mark.parametrize("name", REQUESTS)
async def test_it_goes_on_after_any_event(dispatcher: FakeDispatcher, name: str) -> None:
    dispatcher.script = speak
    url, body = REQUESTS[name]
    whole = await post(url, body, headers=RESUMABLE)
    events, run = events_of(whole), whole.headers["x-llamero-run"]
    assert [id_of(event) for event in events] == [str(n + 1) for n in range(len(events))]
    assert dispatcher.jobs[0].is_durable
    for number in range(len(events) + 1):
        rest = await resume(run, str(number) if number else "")
        assert events_of(rest) == events[number:]
        assert rest.headers["x-llamero-run"] == run
    by_query = await get(f"/v1/runs/{run}/events?starting_after=3")
    assert events_of(by_query) == events[3:]


@pytest.mark.parametrize("name", REQUESTS)
async def test_what_it_says_is_what_a_plain_stream_says(
    dispatcher: FakeDispatcher, name: str
) -> None:
    dispatcher.script = speak
    url, body = REQUESTS[name]
    plain = await post(url, body)
    resumable = await post(url, body, headers=RESUMABLE)
    assert "x-llamero-run" not in plain.headers
    assert b"id: " not in plain.body
    assert not dispatcher.jobs[0].is_durable

    def contents(events: list[str]) -> list[Any]:
        texts = [event.partition("data: ")[2] for event in events]
        made_up = {"id", "created", "generation_settings"}
        return [
            text
            if text == "[DONE]"
            else {k: v for k, v in json.loads(text).items() if k not in made_up}
            for text in texts
        ]

    assert contents(events_of(resumable)) == contents(events_of(plain))


@pytest.mark.parametrize("name", REQUESTS)
async def test_what_is_kept_is_read_as_it_was_written(
    dispatcher: FakeDispatcher, name: str
) -> None:
    url, body = REQUESTS[name]
    await post(url, body, headers=RESUMABLE)
    [document] = dispatcher.kept.values()
    kept = msgspec.json.decode(document, type=KeptRun)
    assert msgspec.json.encode(kept) == document
    assert list(kept.jobs) == [job.id for job in dispatcher.jobs]


@pytest.mark.parametrize("name", REQUESTS)
async def test_several_choices_go_on_each_from_its_own_place(
    dispatcher: FakeDispatcher, name: str
) -> None:
    dispatcher.script = speak
    url, body = REQUESTS[name]
    whole = await post(url, body | {"n": 3}, headers=RESUMABLE)
    events, run = events_of(whole), whole.headers["x-llamero-run"]

    def by_choice(given: list[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for event in given:
            text = event.partition("data: ")[2]
            document = {} if text == "[DONE]" else json.loads(text)
            choice = next(iter(document.get("choices", [])), document)
            found.setdefault(str(choice.get("index")), []).append(text)
        return found

    for number in range(1, len(events) + 1):
        rest = await resume(run, id_of(events[number - 1]))
        assert by_choice(events[:number] + events_of(rest)) == by_choice(events)


def test_ids_fit_whatever_order_the_choices_come_in() -> None:
    rng = random.Random(3)
    events = [say(*"abcdef"), say(*"gh"), say()]

    def write(writer: NumberedChunks) -> list[str]:
        left = [list(reversed(one)) for one in events]
        told = [writer.start()]
        while any(left):
            choice = rng.choice([index for index, one in enumerate(left) if one])
            told.append(writer.write(ChoiceEvent(choice, left[choice].pop())))
        told.append(writer.end())
        return b"".join(told).decode().split("\n\n")[:-1]

    def make(after: tuple[int, ...] | None = None) -> NumberedChunks:
        chunks = OpenAIChunks(Envelope("x", 1, "m", "f"), ChatDialect(), num_choices=3)
        return NumberedChunks(chunks, 3, after)

    whole = write(make())
    for _ in range(200):
        told = whole[: rng.randrange(1, len(whole))]
        told += write(make(read_place(id_of(told[-1]), 3, "p")))
        again = told[: rng.randrange(1, len(told))]
        again += write(make(read_place(id_of(again[-1]), 3, "p")))
        data = [event.partition("data: ")[2] for event in again]
        assert sorted(data) == sorted(event.partition("data: ")[2] for event in whole)
        assert data[-1] == "[DONE]"


async def test_its_id_is_known_before_it_begins(dispatcher: FakeDispatcher) -> None:
    released = asyncio.Event()
    dispatcher.script = lambda job: [released, *say("x")]
    exchange = start("POST", "/v1/chat/completions", CHAT, headers=RESUMABLE)
    await exchange.wait_for(b": queued position=1\n")
    assert exchange.answer.headers["x-llamero-run"].startswith("run_")
    released.set()
    answer = await exchange.finish()
    assert events_of(answer)[-1].endswith("data: [DONE]")
    # OpenAI's client takes an empty line for an event once there was an id.
    assert all(event.data for event in SSEDecoder().iter_bytes(iter([answer.body])))


async def test_nobody_else_finds_it(dispatcher: FakeDispatcher) -> None:
    whole = await post("/v1/chat/completions", CHAT, headers=RESUMABLE)
    run = whole.headers["x-llamero-run"]
    answers = [
        await resume(run, "1", key=LIMITED_KEY),
        await resume("run_" + 32 * "0", "1"),
        await resume("../x", "nonsense"),
        await start("DELETE", f"/v1/runs/{run}", key=LIMITED_KEY).finish(),
        await start("DELETE", "/v1/runs/run_1").finish(),
    ]
    assert {(answer.status, answer.body) for answer in answers[:2] + answers[3:]} == {
        (404, answers[0].body)
    }
    assert answers[0].error["code"] == "run_not_found"
    assert answers[2].status == 404
    assert dispatcher.cancelled == []


async def test_one_whose_events_are_gone_is_unknown(dispatcher: FakeDispatcher) -> None:
    whole = await post("/v1/chat/completions", CHAT | {"n": 2}, headers=RESUMABLE)
    run = whole.headers["x-llamero-run"]
    del dispatcher.jobs[1]
    assert (await resume(run, "")).error["code"] == "run_not_found"
    assert dispatcher.streams[-1].is_closed
    dispatcher.jobs.clear()
    assert (await start("DELETE", f"/v1/runs/{run}").finish()).status == 404


async def test_one_that_another_version_kept_is_unknown(dispatcher: FakeDispatcher) -> None:
    whole = await post("/v1/chat/completions", CHAT, headers=RESUMABLE)
    [place] = dispatcher.kept
    dispatcher.kept[place] = b'{"recipe":{"type":"song"}}'
    answer = await resume(whole.headers["x-llamero-run"], "")
    assert answer.error["code"] == "run_not_found"


@pytest.mark.parametrize("last", ["x", "-1", "1.2", "1" * 30, "1.", "٣"])
async def test_a_place_that_is_none_is_named(dispatcher: FakeDispatcher, last: str) -> None:
    whole = await post("/v1/chat/completions", CHAT, headers=RESUMABLE)
    run = whole.headers["x-llamero-run"]
    answer = await get(f"/v1/runs/{run}/events?starting_after={quote(last)}")
    assert answer.status == 400
    assert answer.error["param"] == "starting_after"


async def test_a_place_beyond_the_end_is_refused(dispatcher: FakeDispatcher) -> None:
    whole = await post("/v1/chat/completions", CHAT, headers=RESUMABLE)
    run, last = whole.headers["x-llamero-run"], len(events_of(whole))
    answer = await resume(run, "900")
    assert (answer.status, answer.error["param"]) == (400, "Last-Event-ID")
    answer = await get(f"/v1/runs/{run}/events?starting_after={last + 1}")
    assert (answer.status, answer.error["param"]) == (400, "starting_after")
    answer = await resume(run, str(last))
    assert (answer.status, answer.body) == (200, b"")


async def test_a_place_beyond_the_end_of_what_goes_on_is_an_error_event(
    dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "REPLAY_SECONDS", 0.01)
    goes_on = asyncio.Event()
    dispatcher.script = lambda job: [*say("Hel")[:-1], goes_on, *say("lo")[1:]]
    exchange = start("POST", "/v1/chat/completions", CHAT, headers=RESUMABLE)
    await exchange.wait_for(b"Hel")
    [(_, run)] = dispatcher.kept
    again = start("GET", f"/v1/runs/{run}/events", headers={"last-event-id": "900"})
    await again.wait_for(b": ping")
    goes_on.set()
    answer = await again.finish()
    assert answer.chunks == [{"error": answer.chunks[0]["error"]}]
    assert b"Hel" in (await exchange.finish()).body


async def test_a_failure_comes_after_what_was_told(dispatcher: FakeDispatcher) -> None:
    failed = Failed(ErrorCode.ENGINE_FAILED, "It broke.")
    dispatcher.script = lambda job: [*say("a", "b")[:-1], failed]
    whole = await post("/v1/chat/completions", CHAT, headers=RESUMABLE)
    events = events_of(whole)
    assert events[-1].startswith('data: {"error"')
    rest = await resume(whole.headers["x-llamero-run"], id_of(events[-2]))
    assert events_of(rest) == events[-1:]
    early = await resume(whole.headers["x-llamero-run"], id_of(events[0]))
    assert events_of(early) == events[1:]


async def test_delete_cancels_and_whoever_reads_hears_of_it(dispatcher: FakeDispatcher) -> None:
    cancelled = Done(FinishReason.CANCELLED, 1, 0, 1)
    dispatcher.script = lambda job: [Tokens("a", (1,)), cancelled]
    whole = await post("/v1/chat/completions", CHAT, headers=RESUMABLE)
    run = whole.headers["x-llamero-run"]
    answer = await start("DELETE", f"/v1/runs/{run}").finish()
    assert answer.json() == {"id": run, "object": "run", "cancelled": True}
    assert dispatcher.cancelled == [dispatcher.jobs[0].id]
    error = whole.chunks[-1]["error"]
    assert (error["code"], error["type"]) == ("request_cancelled", "invalid_request_error")
    assert b"[DONE]" not in whole.body


async def test_deleting_a_run_that_has_ended_cancels_nothing(dispatcher: FakeDispatcher) -> None:
    whole = await post("/v1/chat/completions", CHAT, headers=RESUMABLE)
    run = whole.headers["x-llamero-run"]
    dispatcher.cancellation = Cancellation.TOO_LATE
    answer = await start("DELETE", f"/v1/runs/{run}").finish()
    assert answer.json() == {"id": run, "object": "run", "cancelled": False}
    dispatcher.cancellation = Cancellation.UNKNOWN
    assert (await start("DELETE", f"/v1/runs/{run}").finish()).status == 404


async def test_a_server_that_stops_says_that_it_can_be_resumed(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: [Tokens("Hel", (1,)), asyncio.Event()]
    exchange = start("POST", "/v1/chat/completions", CHAT, headers=RESUMABLE)
    await exchange.wait_for(b"Hel")
    fail_open_runs()
    events = events_of(await exchange.finish())
    assert not events[-1].startswith("id:")
    assert "stream_detached" in events[-1]


async def test_jobs_of_a_refused_request_do_not_go_on(dispatcher: FakeDispatcher) -> None:
    dispatcher.submit_error, dispatcher.num_accepted = engine_error(ErrorCode.QUEUE_FULL), 1
    answer = await post("/v1/chat/completions", CHAT | {"n": 2}, headers=RESUMABLE)
    assert answer.status == 503
    assert dispatcher.streams[0].is_cancelled


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (CHAT | {"stream": False}, "true"),
        (CHAT, "perhaps"),
    ],
)
async def test_what_cannot_be_resumed_is_refused(body: dict[str, Any], word: str) -> None:
    answer = await post("/v1/chat/completions", body, headers={"X-Llamero-Resumable": word})
    assert answer.status == 400
    assert answer.error["param"] == "X-Llamero-Resumable"


async def test_too_many_choices_are_refused() -> None:
    body = {"model": "smol", "prompt": ["a"] * 17, "stream": True}
    answer = await post("/v1/completions", body, headers=RESUMABLE)
    assert answer.error["param"] == "X-Llamero-Resumable"


async def test_what_asks_for_nothing_is_plain(dispatcher: FakeDispatcher) -> None:
    body = {"model": "smol", "prompt": "a", "stream": True, "max_tokens": 0}
    answer = await post("/v1/completions", body, headers=RESUMABLE)
    assert "x-llamero-run" not in answer.headers
    assert not dispatcher.kept


def test_an_id_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidValue):
        read_place("3", 2, "p")
    assert read_place("", 2, "p") == (0, 0, 0)
