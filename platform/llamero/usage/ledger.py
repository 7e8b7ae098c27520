"""How records become rows: each job's once, whoever dies at whatever moment.

Records stay in the relay until their rows are committed. Whoever writes locks one row of the
database, looks which jobs are there already, and adds the others together with their sums: so a
batch that is read again, or by two at once, changes nothing.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.db import DataError, IntegrityError, transaction

from inference.relay.connect import SyncRedis
from inference.relay.usage import UsageRecord, drop_records, read_records
from llamero.usage.models import JobText, LedgerRow, LedgerWriter
from llamero.usage.rows import Entry, make_entries
from llamero.usage.summing import add_to_hours
from llamero.usage.texts import pack_text

logger = logging.getLogger(__name__)
BATCH = 500
# A round of the loop that calls has others to come to.
MAX_BATCHES = 40


def move_records(redis: SyncRedis) -> None:
    """Move what has been recorded into the ledger; a step of the ledger's loop."""
    after = ""
    for _ in range(MAX_BATCHES):
        records = read_records(redis, limit=BATCH, after=after)
        if not records:
            return
        _write(redis, records)
        after = records[-1].entry


@contextmanager
def lock_ledger() -> Iterator[None]:
    """Have nobody write the ledger meanwhile; a transaction."""
    with transaction.atomic():
        # Made with the first record.
        LedgerWriter.objects.get_or_create(pk=1)
        LedgerWriter.objects.select_for_update().get(pk=1)
        yield


def write_records(records: Sequence[UsageRecord]) -> None:
    """Add the rows of those jobs that have none."""
    with lock_ledger():
        known = find_known(record.job for record in records)
        fresh = {record.job: record for record in records if record.job not in known}
        entries = make_entries(list(fresh.values()))
        # Nobody else adds any: were it so all the same, the sums must not count them twice.
        LedgerRow.objects.bulk_create([entry.row for entry in entries])
        add_to_hours([entry.row for entry in entries])
        _keep_texts(entries)


def find_known(jobs: Iterator[str]) -> set[str]:
    """Give those of the jobs that have a row."""
    return set(LedgerRow.objects.filter(job__in=list(jobs)).values_list("job", flat=True))


def _write(redis: SyncRedis, records: Sequence[UsageRecord]) -> None:
    """Write a batch; one record that the database will not have must not hold up the others."""
    try:
        write_records(records)
    except (DataError, IntegrityError):
        if len(records) == 1:
            # It stays where it is, and is tried again: nothing that was used is thrown away.
            logger.exception("the record of job %s cannot be written", records[0].job)
            return
        middle = len(records) // 2
        _write(redis, records[:middle])
        _write(redis, records[middle:])
    else:
        drop_records(redis, [record.entry for record in records])


def _keep_texts(entries: Sequence[Entry]) -> None:
    JobText.objects.bulk_create(
        JobText(
            row=row,
            prompt=pack_text(bill.prompt),
            answer=pack_text(record.answer),
            expires_at=row.ended_at + timedelta(days=bill.text_days),
        )
        for row, record, bill in entries
        if bill.text_days > 0
    )
