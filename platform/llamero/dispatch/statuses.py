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
        self._looking = asyncio.Lock()

    async def of(
        self, deployment: str | None, *, fresh_seconds: float = FRESH_SECONDS
    ) -> tuple[ReplicaStatus, ...]:
        """Give the live replicas of a deployment, or all of them."""
        if time.monotonic() - self._known_at > fresh_seconds:
            async with self._looking:
                if time.monotonic() - self._known_at > fresh_seconds:
                    self._known = await self._relay.replicas()
                    self._known_at = time.monotonic()
        return tuple(s for s in self._known if deployment in (None, s.deployment))

    async def facts(self, deployment: str) -> ModelFacts:
        """Give what a ready replica knows of its model; raises EngineError if none is ready."""
        for fresh_seconds in (FRESH_SECONDS, RECHECK_SECONDS):
            statuses = await self.of(deployment, fresh_seconds=fresh_seconds)
            if ready := [s for s in statuses if s.state is ReplicaState.READY]:
                return max(ready, key=lambda status: status.generation).facts
        raise NoReadyReplica
