"""What replicas say of themselves, asked for at most once a second."""

import asyncio
import time

from inference.protocol.replicas import ModelFacts, ReplicaState, ReplicaStatus
from inference.relay.gateway import GatewayRelay, NoReadyReplica

FRESH_SECONDS = 1.0
# One that becomes ready is noticed sooner.
RECHECK_SECONDS = 0.1


class Statuses:
    """The heartbeats of all replicas; concurrent readers share one look."""

    def __init__(self, relay: GatewayRelay) -> None:
        self._relay = relay
        self._known: tuple[ReplicaStatus, ...] = ()
        self._known_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def of(
        self, deployment: str | None, *, fresh_seconds: float = FRESH_SECONDS
    ) -> tuple[ReplicaStatus, ...]:
        """Give the live replicas of a deployment, or all of them."""
        if time.monotonic() - self._known_at > fresh_seconds:
            await self._look()
        return tuple(s for s in self._known if deployment in (None, s.deployment))

    async def facts(self, deployment: str) -> ModelFacts:
        """Give what a ready replica knows of its model; raises EngineError if none is ready."""
        for fresh_seconds in (FRESH_SECONDS, RECHECK_SECONDS):
            statuses = await self.of(deployment, fresh_seconds=fresh_seconds)
            if ready := [s for s in statuses if s.state is ReplicaState.READY]:
                return max(ready, key=lambda status: status.generation).facts
        raise NoReadyReplica

    async def _look(self) -> None:
        """Look once for all who ask meanwhile; where that fails, it fails for all at once."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._read())
            # Whoever asked may have left: then nobody else reads how it ended.
            self._looking.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(self._looking)

    async def _read(self) -> None:
        self._known = await self._relay.replicas()
        self._known_at = time.monotonic()
