"""What a budget has used by the ledger, what is on its way to it included."""

import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError

from inference.protocol.errors import EngineError, ErrorCode
from inference.relay.limits import Counter, CounterKind, Period, Window
from llamero.limits import ledger
from llamero.limits.ledger import read_spent
from llamero.usage.models import LedgerRow
from llamero.usage.summing import add_to_hours

DAY = Window(Period.DAY, "UTC")


class EmptyStream:
    """A broker without records."""

    def xrange(self, *_: Any, **__: Any) -> list[Any]:
        return []


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_client", EmptyStream)


def add_row(job: str, *, ago: timedelta = timedelta(0), **columns: Any) -> None:
    moment = datetime.now(UTC) - ago
    given = {"began_at": moment, "ended_at": moment, "finish_reason": "eos"} | columns
    add_to_hours([LedgerRow.objects.create(job=job, **given)])


@pytest.mark.django_db(transaction=True)
async def test_the_ledger_is_asked_for_whose_budget_it_is() -> None:
    since = int(time.time()) - 600
    rows = [
        {"key_id": 1, "user_id": 5, "num_prompt_tokens": 10, "num_completion_tokens": 4},
        {"key_id": 2, "user_id": 5, "num_prompt_tokens": 100, "cost": Decimal("0.25")},
        {"key_id": 1, "num_prompt_tokens": 7777, "ago": timedelta(days=1)},
    ]
    for number, row in enumerate(rows):
        await sync_to_async(add_row)(f"job{number}", **row)
    tokens = [
        await read_spent(Counter(CounterKind.SPENT_TOKENS, subject, 1, DAY), since)
        for subject in ("key:1", "user:5", "team:9", "all")
    ]
    assert tokens == [14, 114, 0, 114]
    money = Counter(CounterKind.MONEY, "user:5", 1, DAY)
    assert await read_spent(money, since) == 250_000_000_000


@pytest.mark.django_db(transaction=True)
async def test_where_the_ledger_is_out_of_reach_nothing_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("no database")

    monkeypatch.setattr(ledger, "sum_usage", fail)
    with pytest.raises(EngineError) as raised:
        await read_spent(Counter(CounterKind.SPENT_TOKENS, "key:1", 1, DAY), 0)
    assert raised.value.code is ErrorCode.BROKER_UNAVAILABLE
