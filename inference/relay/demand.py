"""Which deployments are wanted, and what the controller says of each: its side of ``wake.lua``."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from inference.protocol.replicas import Outlook
from inference.relay.connect import SyncRedis, text_of
from inference.relay.keys import (
    CONTROLLER,
    LEASE_SECONDS,
    NUMBERS,
    OUTLOOK,
    PREFIXES,
    RETENTION_SECONDS,
    USED,
)
from inference.relay.scripts import script

_encoder = msgspec.json.Encoder()
_CONTROLLER_MEMBER = "controller"


class DemandBoard:
    """Last uses, outlooks and replica numbers of all deployments. Times are the server's."""

    def __init__(self, redis: SyncRedis) -> None:
        self._redis = redis

    def now(self) -> float:
        """Give the server's time, which all uses are told in."""
        seconds, microseconds = self._redis.time()
        return float(seconds) + float(microseconds) / 1_000_000

    def used_at(self) -> dict[str, float]:
        """Give when each deployment was last wanted."""
        rows: Any = self._redis.zrange(USED, 0, -1, withscores=True)
        return {text_of(name): float(time) for name, time in rows}

    def note_uses(self, deployments: Iterable[str], now: float) -> None:
        """Note that deployments are at work."""
        if marks := dict.fromkeys(deployments, now):
            self._redis.zadd(USED, marks, gt=True)

    def forget_uses(self, seen: Mapping[str, float]) -> None:
        """Let deployments sleep, unless one was wanted after the use that was seen."""
        if seen:
            script("forget_use").run(self._redis, [part for row in seen.items() for part in row])

    def publish(self, outlooks: Mapping[str, Outlook]) -> None:
        """Tell gateways what to hope for; deployments left out are forgotten."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.delete(OUTLOOK)
        if outlooks:
            pipe.hset(
                OUTLOOK, mapping={name: _encoder.encode(one) for name, one in outlooks.items()}
            )
        pipe.execute()

    def expect(self, deployments: Iterable[str], now: float) -> None:
        """Let waiting jobs of deployments wait on: a replica will come that has not begun to."""
        pipe = self._redis.pipeline(transaction=False)
        for deployment in deployments:
            key = PREFIXES["COMING"] + deployment
            pipe.zadd(key, {_CONTROLLER_MEMBER: now})
            pipe.expire(key, RETENTION_SECONDS)
        pipe.execute()

    def next_numbers(self) -> dict[str, int]:
        """Give the number that the next replica of each deployment gets."""
        return {text_of(name): int(n) for name, n in self._redis.hgetall(NUMBERS).items()}

    def keep_numbers(self, numbers: Mapping[str, int]) -> None:
        """Keep what ``next_numbers`` gives: a name is never used again."""
        if numbers:
            rows: dict[Any, Any] = dict(numbers)
            self._redis.hset(NUMBERS, mapping=rows)


class Lease:
    """Lets one control worker do a thing at a time; another takes over when it is gone."""

    def __init__(self, redis: SyncRedis, key: str = CONTROLLER) -> None:
        self._redis = redis
        self._key = key
        self._name = uuid.uuid4().hex

    def hold(self) -> bool:
        """Take or renew the lease; False while another has it."""
        if self._redis.set(self._key, self._name, nx=True, ex=LEASE_SECONDS):
            return True
        holder = self._redis.get(self._key)
        if holder is None or text_of(holder) != self._name:
            return False
        return bool(self._redis.expire(self._key, LEASE_SECONDS))

    def let_go(self) -> None:
        """Let another one do it at once."""
        if self._redis.get(self._key) == self._name.encode():
            self._redis.delete(self._key)
