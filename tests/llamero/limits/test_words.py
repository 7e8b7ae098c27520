"""How limits, times and windows are told."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from inference.relay.limits import Counter, CounterKind, LimitReached, Period, Reading, Window
from llamero.limits.readings import (
    anthropic_headers,
    begin_readings,
    note_readings,
    openai_headers,
)
from llamero.limits.words import describe_refusal, name_limit, write_duration

DAY = Window(Period.DAY, "Europe/Berlin")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0, "0s"),
        (0.0121, "13ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59.9999, "1m0s"),
        (360, "6m0s"),
        (82801.25, "23h0m1.25s"),
    ],
)
def test_times_are_written_as_go_does(seconds: float, text: str) -> None:
    assert write_duration(seconds) == text


@pytest.mark.parametrize(
    ("zone", "moment", "period", "begins", "ends"),
    [
        ("UTC", "2026-02-14T05:00", Period.MONTH, "2026-02-01", "2026-03-01"),
        ("UTC", "2026-12-31T23:59", Period.MONTH, "2026-12-01", "2027-01-01"),
        ("Europe/Berlin", "2026-03-29T12:00", Period.DAY, "2026-03-29", "2026-03-30"),
        ("Europe/Berlin", "2026-10-25T02:30", Period.DAY, "2026-10-25", "2026-10-26"),
        ("Asia/Kathmandu", "2026-05-05T00:10", Period.DAY, "2026-05-05", "2026-05-06"),
        ("Pacific/Chatham", "2026-05-05T00:14", Period.DAY, "2026-05-05", "2026-05-06"),
        ("America/Havana", "2026-11-01T00:30", Period.DAY, "2026-11-01", "2026-11-02"),
    ],
)
def test_windows_are_days_and_months_of_their_zone(
    zone: str, moment: str, period: Period, begins: str, ends: str
) -> None:
    def at(text: str) -> float:
        return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()

    assert Window(period, zone).around(at(moment)) == (at(begins), at(ends))
    assert Window(period, zone).around(at(ends))[0] == at(ends)
    assert Window(period, zone).around(at(begins) - 1)[1] == at(begins)


def test_the_tightest_limit_is_told_in_both_spellings() -> None:
    assert openai_headers() == {}
    begin_readings()
    note_readings(
        [
            Reading(Counter(CounterKind.REQUESTS, "all", 100), 40, 30.0),
            Reading(Counter(CounterKind.REQUESTS, "key:1", 50), 7, 12.5),
            Reading(Counter(CounterKind.TOKENS, "key:1", 1000), 900, 60.0),
            Reading(Counter(CounterKind.SPENT_TOKENS, "team:1", 5000, DAY), 0, 3600.0),
            Reading(Counter(CounterKind.OUTPUT, "key:1", 600), 500, 0.0),
        ]
    )
    assert openai_headers() == {
        "x-ratelimit-limit-requests": "50",
        "x-ratelimit-remaining-requests": "7",
        "x-ratelimit-reset-requests": "12.5s",
        "x-ratelimit-limit-tokens": "5000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1h0m0s",
    }
    told = anthropic_headers()
    assert told["anthropic-ratelimit-requests-remaining"] == "7"
    assert told["anthropic-ratelimit-output-tokens-limit"] == "600"
    assert "anthropic-ratelimit-input-tokens-limit" not in told
    reset = datetime.fromisoformat(told["anthropic-ratelimit-tokens-reset"])
    assert reset.tzinfo is not None


@pytest.mark.parametrize(
    ("counter", "is_passing", "code", "words"),
    [
        (
            Counter(CounterKind.REQUESTS, "key:1", 10),
            False,
            "rate_limit_exceeded",
            "Limit reached: 10 requests per minute for this API key. Please try again in 1m2s.",
        ),
        (
            Counter(CounterKind.SPENT_TOKENS, "team:1", 10, DAY),
            False,
            "insufficient_quota",
            "The budget of 10 tokens a day (Europe/Berlin) for its team is used up.",
        ),
        (
            Counter(CounterKind.MONEY, "all", 2_500_000_000_000, DAY),
            True,
            "rate_limit_exceeded",
            "Running requests hold what is left of 2.5 in money a day (Europe/Berlin)",
        ),
    ],
)
def test_a_refusal_names_the_limit_and_when_to_try_again(
    counter: Counter, is_passing: bool, code: str, words: str
) -> None:
    error = LimitReached(counter, wait_seconds=62.0, is_passing=is_passing, readings=())
    told = describe_refusal(error)
    assert (told.status, told.code, told.retry_after) == (429, code, 62.0)
    assert told.message.startswith(words)


def test_a_budget_with_something_left_says_how_much() -> None:
    counter = Counter(CounterKind.SPENT_TOKENS, "key:1", 400, DAY)
    readings = (Reading(counter, 173, 62.0),)
    error = LimitReached(counter, wait_seconds=62.0, is_passing=False, readings=readings)
    message = describe_refusal(error).message
    assert "173 tokens are left" in message
    assert "max_tokens" in message


@pytest.mark.parametrize(
    ("bound", "words"), [(1, "1 concurrent request"), (2, "2 concurrent requests")]
)
def test_one_is_said_as_one(bound: int, words: str) -> None:
    assert name_limit(Counter(CounterKind.OPEN, "key:1", bound)) == f"{words} for this API key"
