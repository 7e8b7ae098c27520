"""Reports and rows as CSV: streamed, whatever their size, and harmless in a spreadsheet."""

import csv
from collections.abc import AsyncIterator, Iterable, Sequence
from decimal import Decimal
from io import StringIO
from typing import Any

from channels.db import database_sync_to_async
from django.db.models import Q
from django.http import StreamingHttpResponse

from llamero.usage.models import LedgerRow
from llamero.usage.money import write_money
from llamero.usage.reports import Group, Period, ReportLine
from llamero.usage.selectors import Subject

PAGE = 2000
# What makes a spreadsheet take a cell for a formula; some take the wide signs as the others.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_REPORT_COLUMNS = (
    "num_jobs",
    "num_failed",
    "num_cancelled",
    "num_prompt_tokens",
    "num_cached_tokens",
    "num_completion_tokens",
    "num_reasoning_tokens",
    "cost",
    "currency",
)


def export_report(lines: Sequence[ReportLine], group: Group) -> StreamingHttpResponse:
    """Give a report's lines."""
    head = [group.value, *([] if group.is_time else [f"{group}_id"]), *_REPORT_COLUMNS]

    async def give() -> AsyncIterator[bytes]:
        yield write_csv([head])
        yield write_csv(_report_row(line, group) for line in lines)

    return _attach(give(), f"usage-by-{group}.csv")


def export_rows(period: Period, subject: Subject) -> StreamingHttpResponse:
    """Give rows of the ledger, page by page, so that none waits for all."""
    columns = [one.attname for one in LedgerRow._meta.concrete_fields if one.name != "id"]

    async def give() -> AsyncIterator[bytes]:
        yield write_csv([columns])
        last: LedgerRow | None = None
        while page := await database_sync_to_async(_read_page)(period, subject, last):
            yield write_csv([getattr(row, name) for name in columns] for row in page)
            last = page[-1]

    return _attach(give(), f"ledger-{period.begins:%Y-%m-%d}.csv")


def _read_page(period: Period, subject: Subject, last: LedgerRow | None) -> list[LedgerRow]:
    rows = LedgerRow.objects.filter(
        subject.condition, ended_at__gte=period.begins, ended_at__lt=period.ends
    )
    if last is not None:
        rows = rows.filter(
            Q(ended_at__gt=last.ended_at) | Q(ended_at=last.ended_at, pk__gt=last.pk)
        )
    return list(rows.order_by("ended_at", "pk")[:PAGE])


def _report_row(line: ReportLine, group: Group) -> list[Any]:
    if group.is_time:
        heading: list[Any] = [line.time.isoformat() if line.time else ""]
    else:
        heading = [line.names[group], line.ids[group]]
    return [*heading, *(getattr(line, name) for name in _REPORT_COLUMNS)]


def write_csv(rows: Iterable[Iterable[Any]]) -> bytes:
    """Write rows; a text that a spreadsheet would calculate gets an apostrophe before it."""
    out = StringIO()
    csv.writer(out).writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, Decimal):
        return write_money(value)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value.isoformat() if hasattr(value, "isoformat") else value


def _attach(body: AsyncIterator[bytes], name: str) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        body,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
