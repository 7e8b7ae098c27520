"""From the relay's records to rows of the ledger, with names and costs: a few queries a batch."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Model as DjangoModel

from inference.relay.usage import UsageRecord
from llamero.accounts.models import ApiKey, Team
from llamero.usage.bill import Bill, read_bill
from llamero.usage.models import LedgerRow
from llamero.usage.pricing import PriceList, find_cost

MOST = 2**62
_REFUSED = dict.fromkeys(range(32))


class Entry(NamedTuple):
    """A row that is to be written, and the record and bill that it was made from."""

    row: LedgerRow
    record: UsageRecord
    bill: Bill


def make_entries(records: Sequence[UsageRecord]) -> list[Entry]:
    """Make the rows of jobs that have ended; costs are by the price of that moment."""
    pairs = [(record, read_bill(record.bill)) for record in records]
    bills = [bill for _, bill in pairs]
    prices = PriceList(bill.model for bill in bills)
    names = _Names(bills)
    return [Entry(_make_row(record, bill, names, prices), record, bill) for record, bill in pairs]


class _Names:
    """What keys, users and teams are called now; nothing for those that are gone."""

    def __init__(self, bills: Sequence[Bill]) -> None:
        user = get_user_model()
        self.keys = _read(ApiKey, "name", {bill.key for bill in bills})
        self.users = _read(user, user.USERNAME_FIELD, {bill.user for bill in bills})
        self.teams = _read(Team, "name", {bill.team for bill in bills})


def _read(model: type[DjangoModel], field: str, ids: Iterable[int]) -> dict[int, str]:
    wanted = {one for one in ids if one}
    if not wanted:
        return {}
    found = model._default_manager.filter(pk__in=wanted).values_list("pk", field)
    return {pk: str(name) for pk, name in found}


def _make_row(record: UsageRecord, bill: Bill, names: _Names, prices: PriceList) -> LedgerRow:
    ended_at = _moment(record.ended_at)
    num_prompt = _count(record.num_prompt_tokens)
    num_cached = min(_count(record.num_cached_tokens), num_prompt)
    num_completion = _count(record.num_completion_tokens)
    price = prices.find(bill.model, ended_at)
    row = LedgerRow(
        job=record.job,
        request_id=bill.request,
        route=bill.route,
        key_id=bill.key,
        key_name=names.keys.get(bill.key, ""),
        user_id=bill.user,
        user_name=names.users.get(bill.user, ""),
        team_id=bill.team,
        team_name=names.teams.get(bill.team, ""),
        model_id=bill.model,
        model_name=bill.model_name,
        version=bill.version,
        deployment=record.deployment,
        node=record.node,
        replica=record.replica,
        num_prompt_tokens=num_prompt,
        num_cached_tokens=num_cached,
        num_completion_tokens=num_completion,
        num_reasoning_tokens=min(_count(record.num_reasoning_tokens), num_completion),
        ttft_ms=None if record.first_at is None else _span(record.arrived_at, record.first_at),
        duration_ms=_span(record.arrived_at, record.ended_at),
        finish_reason=record.finish_reason,
        error_code=record.error_code,
        cost=None if price is None else find_cost(price, num_prompt, num_cached, num_completion),
        currency="" if price is None else price.currency,
        began_at=_moment(record.arrived_at),
        ended_at=ended_at,
    )
    for name, length in _LENGTHS.items():
        setattr(row, name, getattr(row, name).translate(_REFUSED)[:length])
    return row


def _lengths() -> dict[str, int]:
    found: dict[str, int] = {}
    for field in LedgerRow._meta.get_fields():
        length: Any = getattr(field, "max_length", None)
        if length:
            found[field.name] = length
    return found


# No text may keep a batch from being written: databases refuse NUL, and what is too long.
_LENGTHS = _lengths()


def _moment(time: float) -> datetime:
    return datetime.fromtimestamp(time, UTC)


def _span(begin: float, end: float) -> int:
    return max(0, round((end - begin) * 1000))


def _count(number: int) -> int:
    return max(0, min(number, MOST))
