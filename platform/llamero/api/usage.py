"""GET /v1/usage: what a key has used, in buckets of time, in the shape of OpenAI's usage pages."""

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller
from llamero.api.async_view import AsyncAPIView, caller_of, json_response
from llamero.api.threads import run_in_thread
from llamero.errors import InvalidValue, LlameroError
from llamero.usage.money import write_money
from llamero.usage.reports import Group, Period, ReportLine, merge_unpriced, read_report
from llamero.usage.selectors import Subject

_SECONDS = re.compile(r"[0-9]{1,10}")
_COUNT = re.compile(r"[0-9]{1,4}")
_OLDEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class Width(NamedTuple):
    """The length of a bucket, how many a page has unless it is told, and at most."""

    group: Group
    length: timedelta
    default: int
    most: int


WIDTHS = {
    "1h": Width(Group.HOUR, timedelta(hours=1), 24, 168),
    "1d": Width(Group.DAY, timedelta(days=1), 7, 31),
}


class Asked(NamedTuple):
    """What a request asks for; ``ends`` is the end of all its pages."""

    width: Width
    begins: datetime
    ends: datetime
    num_buckets: int
    by_model: bool


class UsageView(AsyncAPIView):
    """What the key that asks has used: no other key's, whatever it asks."""

    scope = Scope.USAGE

    async def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        """Give a page of buckets, the oldest first."""
        asked = read_query(request, datetime.now(UTC))
        return json_response(
            await run_in_thread(partial(describe_usage, asked, caller_of(request)))
        )


def read_query(request: Request, now: datetime) -> Asked:
    """Read what is asked for; without times, the last buckets up to now."""
    query = request.query_params
    name = query.get("bucket_width", "1d")
    if name not in WIDTHS:
        raise InvalidValue("bucket_width", f"bucket_width must be one of {', '.join(WIDTHS)}.")
    width = WIDTHS[name]
    limit = query.get("limit", str(width.default))
    if not _COUNT.fullmatch(limit) or not 1 <= int(limit) <= width.most:
        raise InvalidValue("limit", f"limit must be a number from 1 to {width.most} with {name}.")
    ends = _read_time(query.get("end_time"), "end_time", now)
    # Up to the end of the bucket that holds the last moment before it.
    ends = _floor(ends - timedelta(microseconds=1), width) + width.length
    begins = _read_time(query.get("start_time"), "start_time", ends - int(limit) * width.length)
    begins = max(_OLDEST, _floor(begins, width))
    if begins >= ends:
        raise InvalidValue("end_time", "end_time must be later than start_time.")
    if (page := query.get("page")) is not None:
        begins = _read_page(page, begins, ends, width)
    return Asked(width, begins, ends, int(limit), _read_groups(request))


def _read_groups(request: Request) -> bool:
    """Tell whether there is a result for each model; the parameter is named as lists are, too."""
    query = request.query_params
    named = [name for key in ("group_by", "group_by[]") for name in query.getlist(key)]
    groups = {group for name in named for group in name.split(",")}
    if groups - {"model"}:
        raise InvalidValue("group_by", "group_by must be model, or be left out.")
    return bool(groups)


def _read_time(text: str | None, param: str, default: datetime) -> datetime:
    """Read a Unix time, or a date with or without a time (UTC where it does not say)."""
    if text is None:
        return default
    try:
        if _SECONDS.fullmatch(text):
            moment = datetime.fromtimestamp(int(text), UTC)
        else:
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        moment = _LATEST
    if not _OLDEST <= moment < _LATEST:
        message = f"{param} must be a Unix time in seconds, or a date such as 2026-01-31."
        raise InvalidValue(param, message)
    return moment


def _read_page(text: str, begins: datetime, ends: datetime, width: Width) -> datetime:
    """Read where a page begins, which its predecessor told."""
    number = text.removeprefix("page_")
    if number != text and _SECONDS.fullmatch(number):
        moment = datetime.fromtimestamp(int(number), UTC)
        if begins <= moment < ends and _floor(moment, width) == moment:
            return moment
    raise InvalidValue("page", "page must be the next_page of a page of the same question.")


def _floor(moment: datetime, width: Width) -> datetime:
    hour = moment.replace(minute=0, second=0, microsecond=0)
    return hour if width.group is Group.HOUR else hour.replace(hour=0)


def describe_usage(asked: Asked, caller: Caller) -> dict[str, Any]:
    """Give a page of what a caller's key has used."""
    if caller.key_id is None:
        message = "Only what API keys use is told here."
        raise LlameroError(404, "no_usage", message, error_type="invalid_request_error")
    width = asked.width
    ends = min(asked.ends, asked.begins + asked.num_buckets * width.length)
    groups = [width.group, *([Group.MODEL] if asked.by_model else [])]
    lines = read_report(Period(asked.begins, ends), groups, Subject(key_id=caller.key_id))
    by_time: dict[datetime, list[ReportLine]] = {}
    for line in merge_unpriced(lines):
        assert line.time is not None
        by_time.setdefault(line.time, []).append(line)
    buckets, moment = [], asked.begins
    while moment < ends:
        results = [_describe_line(line, asked) for line in by_time.get(moment, [])]
        buckets.append(
            {
                "object": "bucket",
                "start_time": int(moment.timestamp()),
                "end_time": int((moment + width.length).timestamp()),
                "results": results,
            }
        )
        moment += width.length
    has_more = ends < asked.ends
    return {
        "object": "page",
        "data": buckets,
        "has_more": has_more,
        "next_page": f"page_{int(ends.timestamp())}" if has_more else None,
    }


def _describe_line(line: ReportLine, asked: Asked) -> dict[str, Any]:
    """Describe what was used; amounts of money are texts, since JSON's numbers are rounded."""
    return {
        "object": "usage.result",
        "model": line.names[Group.MODEL] if asked.by_model else None,
        "num_model_requests": line.num_jobs,
        "num_failed_requests": line.num_failed,
        "num_cancelled_requests": line.num_cancelled,
        "input_tokens": line.num_prompt_tokens,
        "input_cached_tokens": line.num_cached_tokens,
        "output_tokens": line.num_completion_tokens,
        "output_reasoning_tokens": line.num_reasoning_tokens,
        "amount": {"value": write_money(line.cost), "currency": line.currency or None},
    }
