"""Which limits a request meets; read from the database at most once a second for each caller."""

from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from channels.db import database_sync_to_async
from django.db.models import Q

from inference.relay.limits import FREE, Counter, CounterKind, Period, Prices, Window
from llamero.accounts.callers import Caller
from llamero.accounts.targets import of_all
from llamero.expiring_cache import ExpiringCache
from llamero.limits.models import LimitSet
from llamero.usage.pricing import find_token_prices

# What a unit of money is to the counters: see Prices.
MONEY_UNIT = Decimal(10) ** 12
_RATES = {
    "requests_per_minute": CounterKind.REQUESTS,
    "tokens_per_minute": CounterKind.TOKENS,
    "input_tokens_per_minute": CounterKind.INPUT,
    "output_tokens_per_minute": CounterKind.OUTPUT,
    "concurrent_requests": CounterKind.OPEN,
    "queued_requests": CounterKind.QUEUED,
}
_OF_NOW = frozenset({CounterKind.OPEN, CounterKind.QUEUED})
_BUDGETS = {
    "tokens_per_day": (CounterKind.SPENT_TOKENS, Period.DAY),
    "tokens_per_month": (CounterKind.SPENT_TOKENS, Period.MONTH),
    "money_per_day": (CounterKind.MONEY, Period.DAY),
    "money_per_month": (CounterKind.MONEY, Period.MONTH),
}


@dataclass(frozen=True, slots=True)
class CallLimits:
    """All limits that a request meets. ``tokens_per_request`` is the tightest, and whose it is."""

    counters: tuple[Counter, ...] = ()
    tokens_per_request: tuple[int, str] | None = None


# One second, so that a change counts everywhere within one.
recent_limits: ExpiringCache[CallLimits] = ExpiringCache(lifetime_seconds=1.0)


async def find_limits(caller: Caller, model_pk: int | None = None) -> CallLimits:
    """Give the limits of a caller, and of a model where the request is for one."""
    name = f"{caller.owner} {caller.team_id} {model_pk}"
    known = recent_limits.get(name)
    if known is None:
        read = partial(_read_limits, caller, model_pk)
        known = await database_sync_to_async(recent_limits.recall)(name, read)
    return known or CallLimits()


def name_subjects(caller: Caller, model_pk: int | None) -> tuple[str, ...]:
    """Give whose limits a request meets, as counters are named, but for those of all together."""
    return tuple(f"{name}:{pk}" for name, pk in _subjects_of(caller, model_pk).items())


def _subjects_of(caller: Caller, model_pk: int | None) -> dict[str, int]:
    user_pk = None if caller.user is None else caller.user.pk
    pks = {"key": caller.key_id, "user": user_pk, "team": caller.team_id, "model": model_pk}
    return {name: pk for name, pk in pks.items() if pk is not None}


def _read_limits(caller: Caller, model_pk: int | None) -> CallLimits:
    meant = of_all()
    for name, pk in _subjects_of(caller, model_pk).items():
        meant |= Q(**{name: pk})
    found = list(LimitSet.objects.filter(meant))
    prices = _find_prices(model_pk)
    counters = [counter for limits in found for counter in _counters_of(limits, prices)]
    caps = [(one.tokens_per_request, one.subject) for one in found if one.tokens_per_request]
    return CallLimits(tuple(counters), min(caps, default=None))


def _find_prices(model_pk: int | None) -> Prices:
    """Give what tokens of a model cost; nothing where it has no price."""
    found = None if model_pk is None else find_token_prices(model_pk)
    return FREE if found is None else Prices(found.input, found.cached, found.output)


def _counters_of(limits: LimitSet, prices: Prices) -> list[Counter]:
    counters = [
        Counter(kind, limits.subject, bound, revision=limits.revision if kind in _OF_NOW else 0)
        for name, kind in _RATES.items()
        if (bound := getattr(limits, name)) is not None
    ]
    for name, (kind, period) in _BUDGETS.items():
        if (bound := getattr(limits, name)) is None:
            continue
        is_money = kind is CounterKind.MONEY
        counters.append(
            Counter(
                kind,
                limits.subject,
                int(bound * MONEY_UNIT) if is_money else bound,
                Window(period, limits.time_zone),
                limits.revision,
                prices if is_money else FREE,
            )
        )
    return counters
