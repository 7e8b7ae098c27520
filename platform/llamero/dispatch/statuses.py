"""What replicas say of themselves, asked for at most once a second."""

import asyncio
import time

from inference.protocol.replicas import ModelFacts, ReplicaState, ReplicaStatus
from inference.relay.gateway import GatewayRelay, no_ready_replica

FRESH_SECONDS = 1.0


class Statuses:
    """The heartbeats of all replicas; concurrent readers share one look."""

    def __init__(self, relay: GatewayRelay) -> None:
        self._relay = relay
        self._known: tuple[ReplicaStatus, ...] = ()
        self._known_at = float("-inf")
        self._looking = asyncio.Lock()

    async def of(self, deployment: str | None) -> tuple[ReplicaStatus, ...]:
        """Give the live replicas of a deployment, or all of them."""
        if time.monotonic() - self._known_at > FRESH_SECONDS:
            async with self._looking:
                if time.monotonic() - self._known_at > FRESH_SECONDS:
                    self._known = await self._relay.replicas()
                    self._known_at = time.monotonic()
        return tuple(s for s in self._known if deployment in (None, s.deployment))

    async def facts(self, deployment: str) -> ModelFacts:
        """Give what a ready replica knows of its model; raises EngineError if none is ready."""
        ready = [s for s in await self.of(deployment) if s.state is ReplicaState.READY]
        if not ready:
            self._known_at = float("-inf")
            raise no_ready_replica()
        return max(ready, key=lambda status: status.generation).facts
