"""How limits show in answers: headers of each dialect, refusals, and routes without jobs."""

import asyncio
from typing import Any

import pytest

from inference.protocol.errors import EngineError, ErrorCode
from inference.relay.limits import (
    Counter,
    CounterKind,
    LimitReached,
    Period,
    Reading,
    Window,
)
from llamero.accounts.callers import Caller
from llamero.limits import metering
from llamero.limits.selectors import CallLimits
from tests.llamero.api.asgi_client import get, post, start
from tests.llamero.api.fakes import CONTEXT, FakeDispatcher

MESSAGES = [{"role": "user", "content": "Hi"}]
CHAT = {"model": "smol", "messages": MESSAGES, "max_tokens": 5}
REQUESTS = Counter(CounterKind.REQUESTS, "key:1", 10)
BUDGET = Counter(CounterKind.SPENT_TOKENS, "key:1", 1000, Window(Period.DAY, "UTC"))
READINGS = (Reading(REQUESTS, 3, 42.0), Reading(BUDGET, 300, 7200.0))
TOLD = {
    "x-ratelimit-limit-requests": "10",
    "x-ratelimit-remaining-requests": "3",
    "x-ratelimit-reset-requests": "42s",
    "x-ratelimit-limit-tokens": "1000",
    "x-ratelimit-remaining-tokens": "300",
    "x-ratelimit-reset-tokens": "2h0m0s",
}


@pytest.fixture
def limits(dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What limits the caller; a test may change it."""
    found = [CallLimits((REQUESTS, BUDGET))]

    async def find_limits(caller: Caller, model_pk: int | None = None) -> CallLimits:
        return found[0]

    monkeypatch.setattr(metering, "find_limits", find_limits)
    dispatcher.readings = READINGS
    return found


def refuse(counter: Counter, seconds: float, *, is_passing: bool = False) -> LimitReached:
    return LimitReached(counter, wait_seconds=seconds, is_passing=is_passing, readings=READINGS)


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", CHAT | {"stream": True}),
        ("/v1/completions", {"model": "smol", "prompt": "Hi"}),
        ("/v1/responses", {"model": "smol", "input": "Hi", "store": False}),
        ("/v1/embeddings", {"model": "mini", "input": "Hi"}),
        ("/completion", {"model": "smol", "prompt": "Hi"}),
        ("/embedding", {"model": "mini", "content": "Hi"}),
    ],
)
async def test_jobs_are_measured_and_every_answer_tells_what_is_left(
    dispatcher: FakeDispatcher, url: str, body: dict[str, Any]
) -> None:
    if "embedding" in url:
        dispatcher.script = lambda job: vectors()
    answer = await post(url, body)
    assert answer.status == 200, answer.body
    assert TOLD.items() <= answer.headers.items()
    [meter] = dispatcher.meters
    assert meter is not None
    assert meter.counters == (REQUESTS, BUDGET)
    [need] = meter.jobs
    job = dispatcher.jobs[0]
    assert need.id == job.id
    assert dispatcher.admitted == []


def vectors() -> list[Any]:
    from inference.protocol.events import Done, FinishReason, Vectors

    row = "AACAPwAAAAAAAAAAAAAAAA=="
    return [Vectors(0, 4, (row,)), Done(FinishReason.EOS, 3, 0, 0)]


@pytest.mark.usefixtures("limits")
async def test_anthropics_clients_get_their_own_names(dispatcher: FakeDispatcher) -> None:
    answer = await post("/v1/messages", CHAT)
    assert answer.headers["anthropic-ratelimit-requests-limit"] == "10"
    assert answer.headers["anthropic-ratelimit-tokens-remaining"] == "300"
    assert answer.headers["anthropic-ratelimit-tokens-reset"].endswith("Z")
    assert "x-ratelimit-limit-requests" not in answer.headers
    dispatcher.num_accepted, dispatcher.submit_error = 0, refuse(REQUESTS, 1.25)
    refused = await post("/v1/messages", CHAT)
    assert refused.status == 429
    error = refused.json()["error"]
    assert error["type"] == "rate_limit_error"
    assert error["details"] == {"error_code": "rate_limit_exceeded"}
    assert refused.headers["retry-after"] == "2"
    assert refused.headers["anthropic-ratelimit-requests-remaining"] == "3"


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("/v1/models", None),
        ("/tokenize", {"content": "Hi"}),
        ("/v1/messages/count_tokens", {"model": "smol", "messages": MESSAGES}),
        ("/v1/completions", {"model": "smol", "prompt": "Hi", "max_tokens": 0}),
    ],
)
async def test_requests_without_jobs_count_too(
    dispatcher: FakeDispatcher, url: str, body: dict[str, Any] | None
) -> None:
    async def ask() -> Any:
        return await (get(url) if body is None else post(url, body))

    answer = await ask()
    assert answer.status == 200
    assert len(dispatcher.admitted) == 1
    assert any(name.endswith("requests-limit") for name in answer.headers) or (
        TOLD.items() <= answer.headers.items()
    )
    dispatcher.admit_error = refuse(REQUESTS, 20.0)
    refused = await ask()
    assert (refused.status, refused.headers["retry-after"]) == (429, "20")
    assert dispatcher.jobs == []


@pytest.mark.usefixtures("limits")
async def test_nobody_is_counted_for_health_and_without_a_key(dispatcher: FakeDispatcher) -> None:
    await get("/livez")
    assert (await post("/v1/chat/completions", CHAT, key="wrong")).status == 401
    assert (await start("OPTIONS", "/v1/models").finish()).status in (200, 204)
    assert dispatcher.admitted == dispatcher.meters == []


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "told", "retries"),
    [
        (refuse(REQUESTS, 12.3), ("rate_limit_error", "rate_limit_exceeded"), None),
        (refuse(BUDGET, 7200.0), ("insufficient_quota", "insufficient_quota"), "false"),
        (refuse(BUDGET, 1.0, is_passing=True), ("rate_limit_error", "rate_limit_exceeded"), None),
    ],
)
async def test_a_limit_that_is_reached_is_429_and_says_when_to_try_again(
    dispatcher: FakeDispatcher,
    stream: bool,
    error: LimitReached,
    told: tuple[str, str],
    retries: str | None,
) -> None:
    dispatcher.num_accepted, dispatcher.submit_error = 0, error
    answer = await post("/v1/chat/completions", CHAT | {"stream": stream})
    assert (answer.status, answer.error["type"], answer.error["code"]) == (429, *told)
    assert error.retry_after is not None
    assert int(answer.headers["retry-after"]) >= error.retry_after
    assert answer.headers["retry-after-ms"] == str(round(error.retry_after * 1000))
    assert answer.headers.get("x-should-retry") == retries
    assert TOLD.items() <= answer.headers.items()


@pytest.mark.usefixtures("limits")
async def test_llama_servers_clients_get_a_number_for_a_code(dispatcher: FakeDispatcher) -> None:
    dispatcher.num_accepted, dispatcher.submit_error = 0, refuse(REQUESTS, 3.0)
    answer = await post("/completion", {"model": "smol", "prompt": "Hi"})
    assert (answer.status, answer.error["code"]) == (429, 429)


async def test_jobs_of_one_request_share_a_meter_and_are_left_together(
    dispatcher: FakeDispatcher, limits: list[Any]
) -> None:
    assert (await post("/v1/chat/completions", CHAT | {"n": 3})).status == 200
    first, *others = dispatcher.meters
    assert first is not None
    assert [need.id for need in first.jobs] == [job.id for job in dispatcher.jobs]
    assert others == [None, None]
    dispatcher.num_accepted, dispatcher.submit_error = 4, refuse(REQUESTS, 3.0)
    assert (await post("/v1/chat/completions", CHAT | {"n": 3})).status == 429
    assert len(dispatcher.left) == 2


async def test_an_answer_without_a_bound_is_one_where_a_request_may_take_less_than_the_context(
    dispatcher: FakeDispatcher, limits: list[Any]
) -> None:
    limits[0] = CallLimits((REQUESTS,), (60, "key:1"))
    open_chat = {"model": "smol", "messages": MESSAGES}
    assert (await post("/v1/chat/completions", open_chat)).status == 200
    [job] = dispatcher.jobs
    assert len(job.prompt_tokens) + job.max_tokens == 60
    limits[0] = CallLimits((REQUESTS,), (CONTEXT * 2, "key:1"))
    await post("/v1/chat/completions", open_chat)
    assert dispatcher.jobs[1].max_tokens is None
    limits[0] = CallLimits((), (5, "key:1"))
    answer = await post("/v1/chat/completions", open_chat)
    assert (answer.status, answer.error["code"]) == (400, "request_exceeds_limit")
    assert "5 tokens per request for this API key" in answer.error["message"]


async def test_browsers_may_read_what_is_left(settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example"]
    answer = await get("/v1/models", headers={"origin": "https://app.example"})
    exposed = answer.headers["access-control-expose-headers"]
    for name in (*TOLD, "retry-after-ms", "anthropic-ratelimit-output-tokens-reset"):
        assert name in exposed


@pytest.mark.usefixtures("limits")
async def test_a_client_that_leaves_early_leaves_nothing_behind(
    dispatcher: FakeDispatcher,
) -> None:
    dispatcher.script = lambda job: [asyncio.Event()]
    exchange = start("POST", "/v1/chat/completions", CHAT | {"stream": True})
    while not dispatcher.streams:
        await asyncio.sleep(0)
    await exchange.hang_up()
    assert dispatcher.streams[0].is_closed


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize(
    ("code", "num_left"), [(ErrorCode.BROKER_UNAVAILABLE, 3), (ErrorCode.QUEUE_FULL, 0)]
)
async def test_what_a_server_may_have_taken_unheard_is_let_go(
    dispatcher: FakeDispatcher, code: ErrorCode, num_left: int
) -> None:
    dispatcher.submit_error, dispatcher.num_accepted = EngineError(code, "No."), 0
    await post("/v1/chat/completions", CHAT | {"n": 3})
    assert len(dispatcher.left) == num_left
