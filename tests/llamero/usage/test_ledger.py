"""Records become rows, each once, whoever dies at whatever moment."""

import contextlib
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError
from django.db.models import Sum

from inference.relay.keys import USAGE
from inference.relay.usage import read_records
from llamero.usage import ledger
from llamero.usage.ledger import move_records, write_records
from llamero.usage.models import JobText, LedgerRow, ModelPrice, UsageHour
from llamero.usage.selectors import EVERYBODY, Subject, sum_usage
from llamero.usage.texts import unpack_text
from tests.llamero.usage.fakes import add_record
from tests.models_registry.factories import make_model

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """The writer's process ends here."""


def count_jobs() -> int:
    """Count the jobs of all hours: one may have just begun."""
    return int(UsageHour.objects.aggregate(Sum("num_jobs"))["num_jobs__sum"])


def test_a_record_becomes_a_row_and_is_dropped(redis):
    job = add_record(redis, key=0, user=5, route="/v1/chat/completions", request="req_1")
    move_records(redis)
    row = LedgerRow.objects.get()
    assert (row.job, row.request_id, row.route) == (job, "req_1", "/v1/chat/completions")
    assert (row.key_id, row.user_id, row.model_name) == (0, 5, "tiny")
    assert (row.num_prompt_tokens, row.num_cached_tokens, row.num_completion_tokens) == (10, 4, 5)
    assert (row.ttft_ms, row.duration_ms, row.finish_reason) == (500, 2000, "eos")
    assert row.cost is None
    assert redis.xlen(USAGE) == 0


def test_rows_keep_the_names_of_those_who_are_gone(redis, admin_user):
    add_record(redis, key=0, user=admin_user.pk)
    move_records(redis)
    admin_user.delete()
    assert LedgerRow.objects.get().user_name == "admin"


@pytest.mark.parametrize("step", ["find_known", "add_to_hours", "drop_records"])
def test_a_writer_that_dies_between_two_steps_leaves_each_row_once(redis, monkeypatch, step):
    for _ in range(3):
        add_record(redis)

    def die(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ledger, step, die)
        with pytest.raises(Killed):
            move_records(redis)
    add_record(redis)
    move_records(redis)
    assert LedgerRow.objects.count() == 4
    assert count_jobs() == 4
    assert redis.xlen(USAGE) == 0


def test_a_batch_that_two_write_counts_once(redis):
    for _ in range(5):
        add_record(redis)
    records = read_records(redis, limit=9)
    write_records(records)
    write_records(records[2:])
    move_records(redis)
    assert LedgerRow.objects.count() == 5
    assert count_jobs() == 5


def test_a_job_that_was_recorded_twice_counts_once(redis):
    job = add_record(redis)
    add_record(redis, job=job)
    move_records(redis)
    assert LedgerRow.objects.get().job == job
    assert count_jobs() == 1


def test_records_wait_for_a_database_that_is_away(redis, monkeypatch):
    add_record(redis)

    def refuse(*_):
        raise OperationalError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "find_known", refuse)
        with pytest.raises(OperationalError):
            move_records(redis)
    assert redis.xlen(USAGE) == 1
    move_records(redis)
    assert LedgerRow.objects.count() == 1


def test_one_record_that_cannot_be_written_holds_up_no_other(redis, monkeypatch):
    bad = add_record(redis)
    for _ in range(4):
        add_record(redis)
    good = ledger.make_entries

    def make_entries(records):
        if any(record.job == bad for record in records):
            raise ledger.DataError("no such number")
        return good(records)

    monkeypatch.setattr(ledger, "make_entries", make_entries)
    move_records(redis)
    assert LedgerRow.objects.count() == 4
    assert [record.job for record in read_records(redis, limit=9)] == [bad]


def test_hostile_and_foreign_bills_are_rows_too(redis):
    long, nul = "x" * 5000, "a\x00b"
    add_record(redis, model_name=long, request=nul, error=nul, prompt=2**70)
    redis.xadd("lm:usage", {**redis.xrange("lm:usage")[0][1], b"bill": b"\xff{", b"job": b"other"})
    move_records(redis)
    assert LedgerRow.objects.count() == 2
    row = LedgerRow.objects.get(model_id=3)
    assert (len(row.model_name), row.request_id, row.error_code) == (128, "ab", "ab")


def test_the_price_is_the_one_that_was_valid_when_the_job_ended(redis):
    now = datetime.now(UTC)
    model = make_model()
    for days, price in ((9, "1"), (1, "0.0375"), (-1, "7")):
        ModelPrice.objects.create(
            model=model,
            input=Decimal(price),
            cached_input=Decimal("0.0001"),
            output=Decimal("2.5"),
            currency="EUR",
            valid_from=now - timedelta(days=days),
        )
    ends = [now - timedelta(days=days) for days in (10, 5, 0)]
    jobs = [add_record(redis, model=model.pk, ended=end.timestamp()) for end in ends]
    move_records(redis)
    costs = dict(LedgerRow.objects.values_list("job", "cost"))
    assert costs[jobs[0]] is None
    # 6 prompt tokens, 4 cached ones, 5 of the answer, each a millionth of the price.
    assert costs[jobs[1]] == Decimal("0.0000185004")
    assert costs[jobs[2]] == Decimal("0.0000127254")
    total = UsageHour.objects.aggregate(total=Sum("cost"))["total"]
    assert total == Decimal("0.0000312258")


def test_texts_are_kept_only_where_the_bill_says_so_and_as_long(redis):
    add_record(redis)
    add_record(redis, text_days=3, text="Who\x00?", answer="Me \U0001f999")
    redis.xtrim("lm:usage", maxlen=2)
    move_records(redis)
    text = JobText.objects.get()
    assert unpack_text(text.prompt) == "Who\x00?"
    assert unpack_text(text.answer) == "Me \U0001f999"
    assert text.expires_at - text.row.ended_at == timedelta(days=3)


def test_rows_and_waiting_records_count_once_whatever_dies(redis, monkeypatch):
    generator = random.Random(6)
    jobs: dict[str, int] = {}
    steps = ("find_known", "add_to_hours", "drop_records")
    for _ in range(25):
        for _ in range(generator.randrange(4)):
            key, tokens = generator.choice((1, 2)), generator.randrange(50)
            jobs[add_record(redis, key=key, prompt=tokens, cached=0, completion=0)] = tokens
        with monkeypatch.context() as patch:
            step = generator.choice((*steps, ""))
            if step:

                def die(*_):
                    raise Killed

                patch.setattr(ledger, step, die)
            with contextlib.suppress(Killed):
                move_records(redis)
        total = sum_usage(EVERYBODY, LONG_AGO, redis=redis)
        assert (total.num_jobs, total.num_tokens) == (len(jobs), sum(jobs.values()))
        parts = [sum_usage(Subject(key_id=key), LONG_AGO, redis=redis) for key in (1, 2)]
        assert parts[0] + parts[1] == total
    move_records(redis)
    assert set(LedgerRow.objects.values_list("job", flat=True)) == set(jobs)


def test_a_sum_since_a_moment_within_an_hour_is_exact(redis):
    hour = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for minutes in (0, 10, 20, 70, 130):
        add_record(redis, ended=(hour + timedelta(minutes=minutes)).timestamp())
    move_records(redis)
    for since, number in ((0, 5), (1, 4), (10, 4), (11, 3), (60, 2), (71, 1), (131, 0)):
        moment = hour + timedelta(minutes=since)
        assert sum_usage(EVERYBODY, moment).num_jobs == number
