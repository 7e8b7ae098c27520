"""Rows of the ledger for tests of reports, with the sums that belong to them."""

import itertools
from datetime import UTC, datetime
from typing import Any

from llamero.usage.models import LedgerRow
from llamero.usage.summing import add_to_hours

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
_numbers = itertools.count(1)


def make_row(**changes: Any) -> LedgerRow:
    """Make a row of ten prompt tokens and five of an answer, without saving it."""
    fields: dict[str, Any] = {
        "job": f"row{next(_numbers):06d}",
        "key_id": 1,
        "key_name": "first",
        "model_id": 3,
        "model_name": "tiny",
        "num_prompt_tokens": 10,
        "num_cached_tokens": 4,
        "num_completion_tokens": 5,
        "ttft_ms": 500,
        "finish_reason": "eos",
        "began_at": NOON,
        "ended_at": NOON,
    }
    return LedgerRow(**(fields | changes))


def save_rows(*rows: LedgerRow) -> None:
    """Save rows as the ledger's writer does."""
    LedgerRow.objects.bulk_create(rows)
    add_to_hours(rows)
