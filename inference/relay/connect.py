"""How to reach the Redis-protocol server: bounded pools, short timeouts, one quick retry."""

import os
import socket
from typing import Any

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

URL_VARIABLE = "LLAMERO_REDIS_URL"
_SCHEMES = ("redis://", "rediss://", "unix://")
# What a broken, restarting, paused or loading server looks like to a caller.
UNREACHABLE = (RedisConnectionError, RedisTimeoutError, OSError)

SyncRedis = redis.Redis
AsyncRedis = redis.asyncio.Redis
__all__ = [
    "UNREACHABLE",
    "URL_VARIABLE",
    "AsyncRedis",
    "RedisError",
    "SyncRedis",
    "connect",
    "connect_async",
    "text_of",
]


class _WaryPool(redis.ConnectionPool):
    """Lets go of idle connections when one breaks in use: a dead link tells none of them."""

    def release(self, connection: Any) -> None:
        is_broken = not connection.is_connected
        super().release(connection)
        if is_broken:
            self.disconnect(inuse_connections=False)


class _WaryAsyncPool(redis.asyncio.BlockingConnectionPool):
    """The same for an event loop."""

    async def release(self, connection: Any) -> None:
        is_broken = not connection.is_connected
        await super().release(connection)
        if is_broken:
            for idle in tuple(self._available_connections):
                # Without waiting, so that none of them is taken meanwhile.
                await idle.disconnect(nowait=True)


def connect(
    url: str | None = None, *, max_connections: int = 512, patience_seconds: float = 5.0
) -> SyncRedis:
    """Open a thread-safe client of the server at ``url`` or ``LLAMERO_REDIS_URL``.

    Nothing is sent until the first command. A blocking read must wait for less than the patience.
    One call more than ``max_connections`` at once fails: bound them only where threads are counted.
    Raises ValueError where the variable is missing or no address.
    """
    address = url or _read_address()
    pool = _WaryPool.from_url(
        address,
        max_connections=max_connections,
        socket_timeout=patience_seconds,
        socket_connect_timeout=2.0,
        health_check_interval=15,
        # A pooled connection that died with the server is replaced once; a timeout is not retried.
        retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        **_keepalive(address),
    )
    return redis.Redis.from_pool(pool)


def connect_async(url: str | None = None, *, max_connections: int = 16) -> AsyncRedis:
    """Open a client for one event loop; callers wait for a connection when all are in use."""
    address = url or _read_address()
    pool = _WaryAsyncPool.from_url(
        address,
        max_connections=max_connections,
        timeout=2.0,
        socket_timeout=2.0,
        socket_connect_timeout=1.0,
        health_check_interval=0,
        retry=AsyncRetry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        **_keepalive(address),
    )
    return redis.asyncio.Redis.from_pool(pool)


def _read_address() -> str:
    address = os.environ.get(URL_VARIABLE, "")
    if address.startswith(_SCHEMES):
        return address
    what = f"is {address!r}, but must be" if address else "is not set; it must be"
    raise ValueError(
        f"{URL_VARIABLE} {what} the Redis-protocol server's address, like redis://host:6379/0 or "
        "unix:///path.sock."
    )


def text_of(raw: bytes | str) -> str:
    """Read a reply that is a name."""
    return raw if isinstance(raw, str) else raw.decode()


def _keepalive(address: str) -> dict[str, Any]:
    """Give the options that notice a dead TCP peer; a Unix socket needs none."""
    if address.startswith("unix:"):
        return {}
    options = {socket.TCP_KEEPINTVL: 3, socket.TCP_KEEPCNT: 3}
    if hasattr(socket, "TCP_KEEPIDLE"):
        options[socket.TCP_KEEPIDLE] = 10
    return {"socket_keepalive": True, "socket_keepalive_options": options}
