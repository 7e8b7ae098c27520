"""Charts of what was used: the last hour by minutes, the last day by hours, the last month by days.

Drawn here, as SVG without scripts: the same numbers stand in a table below.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Count, F, Sum
from django.db.models.functions import TruncMinute
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import pluralize
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from llamero.console.access import staff_only
from llamero.expiring_cache import ExpiringCache
from llamero.usage.models import LedgerRow
from llamero.usage.names import find_names
from llamero.usage.reports import Group, Period, read_report

WIDTH, HEIGHT = 720, 160
MAX_SERIES = 6
GAP = 0.2
OTHERS = "all others"
# What the playground uses is of no key.
NAMELESS = "none"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# A page that many open costs one look at the ledger.
_recent: ExpiringCache["History"] = ExpiringCache(lifetime_seconds=15.0)


class Span(StrEnum):
    """How far back a chart goes."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    @property
    def step(self) -> timedelta:
        """What one bar stands for."""
        return {Span.HOUR: MINUTE, Span.DAY: HOUR, Span.MONTH: DAY}[self]

    @property
    def num_bars(self) -> int:
        """How many bars there are."""
        return {Span.HOUR: 60, Span.DAY: 24, Span.MONTH: 30}[self]


@dataclass(frozen=True, slots=True)
class Use:
    """What somebody or something used in the time of one bar."""

    at: datetime
    subject: int
    num_tokens: int
    num_jobs: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of a bar, placed and sized, with what it says when pointed at."""

    series: int
    x: float
    y: float
    width: float
    height: float
    words: str


@dataclass(frozen=True, slots=True)
class Series:
    """One colour: whose it is, and what it adds up to."""

    number: int
    name: str
    num_tokens: int
    num_jobs: int


@dataclass(frozen=True, slots=True)
class History:
    """A chart, ready to be drawn. ``peak`` is what the highest bar stands for."""

    span: Span
    by: Group
    series: tuple[Series, ...]
    bars: tuple[Bar, ...]
    peak: int
    begins: datetime
    ends: datetime


@require_safe
@never_cache
@staff_only
def show_history(request: HttpRequest) -> HttpResponse:
    """Give the chart alone, for the page to exchange."""
    return render(request, "console/history.html", history_context(request))


def history_context(request: HttpRequest) -> dict[str, Any]:
    """Give what the template shows: the chart that was asked for, of those one may see."""
    choices = [one for one in (Group.MODEL, Group.KEY) if _may_see(request.user, one)]
    if not choices:
        return {}
    span = _choice(Span, request.GET.get("span"), Span.HOUR)
    by = _choice(Group, request.GET.get("by"), choices[0])
    by = by if by in choices else choices[0]
    history = _recent.recall(f"{span} {by}", lambda: read_history(span, by))
    return {
        "history": history,
        "spans": list(Span),
        "groups": choices,
        "chart_size": {"width": WIDTH, "height": HEIGHT},
    }


def read_history(span: Span, by: Group, now: datetime | None = None) -> History:
    """Read the ledger, and place its sums."""
    begins, ends = _limits(span, now or timezone.now())
    uses = _read_minutes(begins, by) if span is Span.HOUR else _read_hours(span, begins, ends, by)
    return draw(span, by, list(uses), begins, find_names(by, {use.subject for use in uses}))


def draw(
    span: Span, by: Group, uses: Sequence[Use], begins: datetime, names: Mapping[int, str]
) -> History:
    """Place the bars: the most used series at the bottom, what is little together at the top."""
    totals: dict[int, int] = defaultdict(int)
    for use in uses:
        totals[use.subject] += use.num_tokens
    ranked = sorted(totals, key=lambda one: (-totals[one], one))
    numbers = {subject: min(place, MAX_SERIES) for place, subject in enumerate(ranked)}
    heights: dict[tuple[int, int], int] = defaultdict(int)
    jobs: dict[int, int] = defaultdict(int)
    for use in uses:
        place = (use.at - begins) // span.step
        if 0 <= place < span.num_bars:
            heights[place, numbers[use.subject]] += use.num_tokens
            jobs[numbers[use.subject]] += use.num_jobs
    labels = {numbers[one]: names.get(one, "") or NAMELESS for one in ranked[:MAX_SERIES]}
    if len(ranked) > MAX_SERIES:
        labels[MAX_SERIES] = OTHERS
    series = tuple(
        Series(number, name, sum(n for (_, s), n in heights.items() if s == number), jobs[number])
        for number, name in sorted(labels.items())
    )
    bars, peak = _place(heights, span, begins, labels)
    ends = begins + span.num_bars * span.step
    return History(span, by, series, bars, peak, begins, ends)


def _place(
    heights: Mapping[tuple[int, int], int], span: Span, begins: datetime, labels: Mapping[int, str]
) -> tuple[tuple[Bar, ...], int]:
    columns: dict[int, int] = defaultdict(int)
    for (place, _), count in heights.items():
        columns[place] += count
    peak = max(columns.values(), default=0)
    width = WIDTH / span.num_bars
    tops: dict[int, float] = defaultdict(lambda: float(HEIGHT))
    bars = []
    for (place, number), count in sorted(heights.items()):
        if not count:
            continue
        height = HEIGHT * count / peak
        tops[place] -= height
        at = begins + place * span.step
        words = f"{at:%d %b %H:%M} UTC, {labels[number]}: {intcomma(count)} token{pluralize(count)}"
        x = place * width + width * GAP / 2
        bars.append(Bar(number, x, tops[place], width * (1 - GAP), height, words))
    return tuple(bars), peak


def _limits(span: Span, now: datetime) -> tuple[datetime, datetime]:
    """Give the first bar's beginning and the last one's end: the present one counts."""
    cut: dict[Span, dict[str, int]] = {
        Span.HOUR: {"second": 0, "microsecond": 0},
        Span.DAY: {"minute": 0, "second": 0, "microsecond": 0},
        Span.MONTH: {"hour": 0, "minute": 0, "second": 0, "microsecond": 0},
    }
    ends = now.astimezone(UTC).replace(**cut[span]) + span.step  # type: ignore[arg-type]
    return ends - span.num_bars * span.step, ends


def _read_minutes(begins: datetime, by: Group) -> list[Use]:
    rows = (
        LedgerRow.objects.filter(ended_at__gte=begins)
        .order_by()
        .annotate(minute=TruncMinute("ended_at", tzinfo=UTC))
        .values("minute", f"{by}_id")
        .annotate(jobs=Count("pk"), tokens=Sum(F("num_prompt_tokens") + F("num_completion_tokens")))
    )
    return [Use(row["minute"], row[f"{by}_id"], row["tokens"] or 0, row["jobs"]) for row in rows]


def _read_hours(span: Span, begins: datetime, ends: datetime, by: Group) -> list[Use]:
    time = Group.HOUR if span is Span.DAY else Group.DAY
    lines = read_report(Period(begins, ends), (time, by))
    return [
        Use(line.time, line.ids[by], line.num_tokens, line.num_jobs)
        for line in lines
        if line.time is not None
    ]


def _may_see(user: Any, by: Group) -> bool:
    if isinstance(user, AnonymousUser):
        return False
    permission = "models_registry.view_model" if by is Group.MODEL else "accounts.view_apikey"
    return bool(user.has_perm("usage.view_usagehour") and user.has_perm(permission))


def _choice(kind: Any, text: str | None, default: Any) -> Any:
    known: set[str | None] = {one.value for one in kind}
    return kind(text) if text in known else default
