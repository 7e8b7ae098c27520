"""The channel on which gateways hear whose rights have changed. What they are the database says."""

from collections.abc import Sequence

import msgspec

from inference.relay.connect import RedisError, SyncRedis

RIGHTS_CHANNEL = "lm:rights"
MOST_OWNERS = 500
_owners = msgspec.json.Decoder(list[str])


def announce(redis: SyncRedis, owners: Sequence[str]) -> None:
    """Have every gateway look at owners anew; raises OSError where the server is out of reach."""
    try:
        for start in range(0, len(owners), MOST_OWNERS):
            redis.publish(RIGHTS_CHANNEL, msgspec.json.encode(owners[start : start + MOST_OWNERS]))
    except RedisError as error:
        raise OSError(str(error)) from error


def read_owners(raw: bytes) -> frozenset[str]:
    """Read a message; raises msgspec.DecodeError."""
    return frozenset(_owners.decode(raw))
