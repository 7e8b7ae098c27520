"""Keeps the sums of hours: called with new rows, by whoever holds the ledger's lock."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from llamero.usage.models import LedgerRow, UsageHour
from llamero.usage.models.hour import COUNTS, SUBJECTS


def add_to_hours(rows: Sequence[LedgerRow]) -> None:
    """Add rows to the sums of their hours: two statements, whatever their number."""
    sums: dict[tuple[Any, ...], UsageHour] = {}
    for row in rows:
        hour = row.ended_at.replace(minute=0, second=0, microsecond=0)
        key = (hour, *(getattr(row, name) for name in SUBJECTS))
        if key not in sums:
            sums[key] = UsageHour(
                hour=hour, cost=Decimal(0), **dict(zip(SUBJECTS, key[1:], strict=True))
            )
        _add(sums[key], row)
    for known in _find_known(list(sums.values())):
        if (added := sums.get(_key_of(known))) is not None:
            for name in COUNTS:
                setattr(added, name, getattr(added, name) + getattr(known, name))
    UsageHour.objects.bulk_create(
        sums.values(),
        update_conflicts=True,
        unique_fields=("hour", *SUBJECTS),
        update_fields=COUNTS,
    )


def _add(total: UsageHour, row: LedgerRow) -> None:
    total.num_jobs += 1
    total.num_failed += row.finish_reason == "error"
    total.num_cancelled += row.finish_reason == "cancelled"
    total.num_prompt_tokens += row.num_prompt_tokens
    total.num_cached_tokens += row.num_cached_tokens
    total.num_completion_tokens += row.num_completion_tokens
    total.num_reasoning_tokens += row.num_reasoning_tokens
    total.cost += row.cost or Decimal(0)
    total.num_begun += row.ttft_ms is not None
    total.ttft_ms += row.ttft_ms or 0
    total.duration_ms += row.duration_ms


def _find_known(wanted: Sequence[UsageHour]) -> Iterable[UsageHour]:
    """Give the sums that are there, and maybe some others of the same hours."""
    if not wanted:
        return ()
    limits = {f"{name}__in": {getattr(one, name) for one in wanted} for name in SUBJECTS}
    return UsageHour.objects.filter(hour__in={one.hour for one in wanted}, **limits)


def _key_of(one: UsageHour) -> tuple[Any, ...]:
    return (one.hour, *(getattr(one, name) for name in SUBJECTS))
