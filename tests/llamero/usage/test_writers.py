"""Several writers of the ledger at once, on a database that several may write at once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.db.models import Sum

from inference.relay.connect import SyncRedis
from inference.relay.usage import UsageRecord, read_records
from llamero.usage.ledger import write_records
from llamero.usage.models import LedgerRow, UsageHour
from tests.llamero.usage.fakes import add_record

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="SQLite has one writer: see tests/postgresql.py"
    ),
]


def write(records: Sequence[UsageRecord]) -> None:
    try:
        write_records(records)
    finally:
        connection.close()


def test_what_several_write_at_once_counts_once(redis: SyncRedis) -> None:
    for number in range(60):
        add_record(redis, key=number % 3)
    records = read_records(redis, limit=100)
    assert len(records) == 60
    # Each record is read by two writers, in different orders.
    batches = [records[first : first + 20] for first in range(0, 60, 10)]
    with ThreadPoolExecutor(max_workers=6) as threads:
        list(threads.map(write, [batch[::-1] for batch in batches] + batches))
    assert LedgerRow.objects.count() == 60
    sums = UsageHour.objects.aggregate(jobs=Sum("num_jobs"), tokens=Sum("num_prompt_tokens"))
    assert sums == {"jobs": 60, "tokens": 600}
