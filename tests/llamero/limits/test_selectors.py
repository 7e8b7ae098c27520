"""Which limits a request meets, and what is refused for good."""

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from inference.relay.limits import Counter, CounterKind, JobNeed, Period, Prices, Window
from llamero.accounts.callers import Caller
from llamero.accounts.models import ApiKey, Team
from llamero.errors import LlameroError
from llamero.limits import metering
from llamero.limits.models import LimitSet
from llamero.limits.selectors import CallLimits, _read_limits
from llamero.usage.models import ModelPrice
from models_registry.models import Model


def test_limits_of_every_level_come_together(
    caller: Caller, key: ApiKey, team: Team, model: Model
) -> None:
    ModelPrice.objects.create(model=model, input=Decimal("0.5"), output=2, currency="EUR")
    LimitSet.objects.create(requests_per_minute=100)
    LimitSet.objects.create(key=key, requests_per_minute=10, tokens_per_request=400)
    LimitSet.objects.create(user=key.user, concurrent_requests=3, tokens_per_request=300)
    LimitSet.objects.create(team=team, tokens_per_day=5000, time_zone="Europe/Berlin")
    of_model = LimitSet.objects.create(model=model, money_per_month=Decimal("1.5"))
    LimitSet.objects.create(model=Model.objects.create(slug="other"), queued_requests=1)
    found = _read_limits(caller, model.pk)
    assert found.tokens_per_request == (300, f"user:{key.user_id}")
    assert {(one.kind.value, one.subject, one.bound) for one in found.counters} == {
        ("requests", "all", 100),
        ("requests", f"key:{key.pk}", 10),
        ("open", f"user:{key.user_id}", 3),
        ("spent", f"team:{team.pk}", 5000),
        ("money", f"model:{model.pk}", 1_500_000_000_000),
    }
    [budget] = [one for one in found.counters if one.kind is CounterKind.SPENT_TOKENS]
    assert budget.window == Window(Period.DAY, "Europe/Berlin")
    [money] = [one for one in found.counters if one.kind is CounterKind.MONEY]
    assert money.prices == Prices(500_000, 500_000, 2_000_000)
    assert money.revision == of_model.revision > 0
    assert {one.subject for one in _read_limits(caller, None).counters} == {
        "all",
        f"key:{key.pk}",
        f"user:{key.user_id}",
        f"team:{team.pk}",
    }


def test_a_change_of_limits_has_a_greater_revision(key: ApiKey) -> None:
    limits = LimitSet.objects.create(key=key, tokens_per_day=5)
    first = limits.revision
    limits.save()
    assert limits.revision >= first
    limits.delete()
    assert LimitSet.objects.create(key=key, tokens_per_day=5).revision >= first


@pytest.mark.django_db
def test_limits_are_of_one_subject_and_once_of_all(key: ApiKey, team: Team) -> None:
    LimitSet.objects.create(requests_per_minute=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        LimitSet.objects.create(requests_per_minute=2)
    with pytest.raises(IntegrityError), transaction.atomic():
        LimitSet.objects.create(key=key, team=team)
    with pytest.raises(ValidationError, match="limits of all already"):
        LimitSet().full_clean()
    with pytest.raises(ValidationError, match="no time zone 'Mars/Base'"):
        LimitSet(key=key, time_zone="Mars/Base").full_clean()


async def measure(limits: CallLimits, *jobs: JobNeed, monkeypatch) -> metering.Measured:
    async def find_limits(*_):
        return limits

    monkeypatch.setattr(metering, "find_limits", find_limits)
    caller = Caller(user=None, key_id=1, owner="key:1")
    return await metering.measure(caller=caller, model_pk=1, jobs=jobs, seconds=60)


@pytest.mark.parametrize(
    ("counter", "job", "is_good"),
    [
        (Counter(CounterKind.TOKENS, "all", 100), JobNeed("a", 40, 60, 900), True),
        (Counter(CounterKind.TOKENS, "all", 99), JobNeed("a", 40, 60, 900), False),
        (Counter(CounterKind.OUTPUT, "all", 256), JobNeed("a", 999, None, 900), True),
        (Counter(CounterKind.OUTPUT, "all", 255), JobNeed("a", 999, None, 900), False),
        (Counter(CounterKind.OUTPUT, "all", 20), JobNeed("a", 999, None, 20), True),
        (Counter(CounterKind.INPUT, "all", 10), JobNeed("a", 11, 0, 0), False),
        (Counter(CounterKind.REQUESTS, "all", 1), JobNeed("a", 999, 999, 999), True),
    ],
)
async def test_what_never_fits_is_told_so_at_once(monkeypatch, counter, job, is_good) -> None:
    limits = CallLimits((counter,))
    if is_good:
        assert (await measure(limits, job, monkeypatch=monkeypatch)).meter is not None
        return
    with pytest.raises(LlameroError, match="larger than its limit ever allows") as raised:
        await measure(limits, job, monkeypatch=monkeypatch)
    assert (raised.value.status, raised.value.code) == (400, "request_exceeds_limit")


async def test_answers_of_one_request_share_what_it_may_take(monkeypatch) -> None:
    limits = CallLimits((), (100, "key:1"))
    open_jobs = [JobNeed("a", 20, None, 500), JobNeed("b", 30, None, 500)]
    assert (await measure(limits, *open_jobs, monkeypatch=monkeypatch)).longest_answer == 25
    fixed = JobNeed("a", 40, 60, 500)
    assert (await measure(limits, fixed, monkeypatch=monkeypatch)).longest_answer is None
    for jobs in ([fixed._replace(completion=61)], [JobNeed("a", 100, None, 5)]):
        with pytest.raises(LlameroError, match="100 tokens per request for this API key"):
            await measure(limits, *jobs, monkeypatch=monkeypatch)
