"""Load a deployment that sleeps, or send one to sleep: what ``DEPLOYMENT_DEMAND`` names."""

from collections.abc import Iterable

from django.conf import settings

from inference.relay.connect import UNREACHABLE, RedisError, connect
from inference.relay.demand import DemandBoard


def note_demand(deployments: Iterable[str], *, is_wanted: bool) -> bool:
    """Note that deployments without a minimum are wanted, or are not; False: nobody heard it."""
    redis = connect(settings.REDIS_URL)
    try:
        board = DemandBoard(redis)
        now = board.now()
        if is_wanted:
            board.note_uses(deployments, now)
        else:
            board.forget_uses(dict.fromkeys(deployments, now))
    except (*UNREACHABLE, RedisError):
        return False
    finally:
        redis.close()
    return True
