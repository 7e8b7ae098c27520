"""What the ledger says was used of a budget."""

import logging
from datetime import UTC, datetime
from functools import cache

from channels.db import database_sync_to_async
from django.conf import settings

from inference.protocol.errors import EngineError, ErrorCode
from inference.relay.connect import UNREACHABLE, RedisError, SyncRedis, connect
from inference.relay.limits import Counter, CounterKind
from llamero.expiring_cache import OUTAGES
from llamero.limits.selectors import MONEY_UNIT
from llamero.usage.selectors import EVERYBODY, Subject, sum_usage

logger = logging.getLogger(__name__)


async def read_spent(counter: Counter, since: int) -> int:
    """Sum what a budget's subject has used since a time: tokens, or money as counters hold it.

    ``settings.BUDGET_LEDGER``. Raises EngineError where it cannot be told: nothing is served then
    that a budget might not allow.
    """
    try:
        spent: int = await database_sync_to_async(_read_spent)(counter, since)
    except (*OUTAGES, *UNREACHABLE, RedisError) as error:
        logger.error("What is left of a budget cannot be told: %s", error)
        raise EngineError(
            ErrorCode.BROKER_UNAVAILABLE,
            "The service cannot tell now what is left of your budget. Please try again.",
            is_retryable=True,
        ) from error
    return spent


def _read_spent(counter: Counter, since: int) -> int:
    kind, _, number = counter.subject.partition(":")
    subject = Subject(**{f"{kind}_id": int(number)}) if number else EVERYBODY
    used = sum_usage(subject, datetime.fromtimestamp(since, UTC), redis=_client())
    return int(used.cost * MONEY_UNIT) if counter.kind is CounterKind.MONEY else used.num_tokens


@cache
def _client() -> SyncRedis:
    return connect(settings.REDIS_URL)
