"""Limits in words, for those who meet them."""

from math import ceil

from django.template.defaultfilters import pluralize

from inference.protocol.errors import ErrorCode
from inference.relay.limits import LEAST_ANSWER, Counter, CounterKind, LimitReached, Period
from llamero.errors import LlameroError

_SUBJECTS = {
    "key": "this API key",
    "user": "its user",
    "team": "its team",
    "model": "this model",
    "all": "this server",
}
_KINDS = {
    CounterKind.REQUESTS: "request{s} per minute",
    CounterKind.TOKENS: "token{s} per minute",
    CounterKind.INPUT: "prompt token{s} per minute",
    CounterKind.OUTPUT: "answer token{s} per minute",
    CounterKind.OPEN: "concurrent request{s}",
    CounterKind.QUEUED: "queued request{s}",
}
_PERIODS = {Period.DAY: "day", Period.MONTH: "month"}


def name_subject(subject: str) -> str:
    """Say whose a limit is."""
    return _SUBJECTS.get(subject.partition(":")[0], "this caller")


def name_limit(counter: Counter) -> str:
    """Say what a limit allows: ``10 requests per minute for this API key``."""
    return f"{_amount(counter)} for {name_subject(counter.subject)}"


def describe_refusal(error: LimitReached) -> LlameroError:
    """Give what a client is told that has met a limit."""
    limit, wait = name_limit(error.counter), write_duration(error.retry_after or 0.0)
    is_quota = error.code is ErrorCode.INSUFFICIENT_QUOTA
    if is_quota:
        message = f"{_say_what_is_left(error, limit)} It begins anew in {wait}."
    elif error.is_passing and error.counter.window is not None:
        message = f"Running requests hold what is left of {limit}. Please try again in {wait}."
    else:
        message = f"Limit reached: {limit}. Please try again in {wait}."
    return LlameroError(
        429,
        error.code.value,
        message,
        error_type=error.code.value if is_quota else "",
        retry_after=error.retry_after,
    )


def _say_what_is_left(error: LimitReached, limit: str) -> str:
    left = next((one.left for one in error.readings if one.counter == error.counter), 0)
    if left <= 0:
        return f"The budget of {limit} is used up."
    amount, verb = _amount_of(error.counter, left), "is" if left == 1 else "are"
    return (
        f"Of the budget of {limit}, {amount} {verb} left, which is too little for this request: "
        f"its prompt and max_tokens, or, without max_tokens, an answer of {LEAST_ANSWER} tokens."
    )


def write_duration(seconds: float) -> str:
    """Write a time as Go does: ``12ms``, ``1.5s``, ``6m0s``, ``23h0m1s``."""
    milliseconds = ceil(max(0.0, seconds) * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def _amount(counter: Counter) -> str:
    if counter.window is None:
        return f"{counter.bound} {_KINDS[counter.kind].format(s=pluralize(counter.bound))}"
    period = f"a {_PERIODS[counter.window.period]} ({counter.window.zone})"
    return f"{_amount_of(counter, counter.bound)} {period}"


def _amount_of(counter: Counter, number: int) -> str:
    if counter.kind is CounterKind.MONEY:
        return f"{number / 10**12:g} in money"
    return f"{number} token{pluralize(number)}"
