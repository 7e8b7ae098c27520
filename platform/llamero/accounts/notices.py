"""Tell every gateway that the rights of somebody have changed, so that they look at once."""

import logging
from collections.abc import Iterable
from functools import cache, partial

from django.conf import settings
from django.db import transaction

from inference.relay.connect import SyncRedis, connect
from inference.relay.rights import announce
from llamero.accounts.callers import key_owner, user_owner

logger = logging.getLogger(__name__)


def announce_keys(key_ids: Iterable[int]) -> None:
    """Tell of keys once what changed is committed."""
    _announce_soon([key_owner(key_id) for key_id in key_ids])


def announce_user(user_id: int) -> None:
    """Tell of what a user does in a browser."""
    _announce_soon([user_owner(user_id)])


def _announce_soon(owners: list[str]) -> None:
    if owners:
        transaction.on_commit(partial(_announce, owners))


def _announce(owners: list[str]) -> None:
    """Publish. Where that fails, gateways find out by themselves within a second."""
    try:
        announce(_client(), owners)
    except OSError as error:
        logger.warning("Gateways were not told of changed rights: %s", error)


@cache
def _client() -> SyncRedis:
    return connect(settings.REDIS_URL)
