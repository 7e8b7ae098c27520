"""How replicas ended badly: the last time is kept, also when others serve in their place."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from inference.protocol.replicas import ReplicaFailure, ReplicaStatus
from models_registry.services.deployments import note_deployment_error


@dataclass(slots=True)
class FailureLog:
    """Writes each failure down once; heartbeats repeat it."""

    written_at: dict[str, float] = field(default_factory=dict)

    def keep(self, statuses: Iterable[ReplicaStatus]) -> None:
        """Write down what is new."""
        latest: dict[str, ReplicaFailure] = {}
        for status in statuses:
            failure, known = status.failure, latest.get(status.deployment)
            if failure is not None and (known is None or known.at < failure.at):
                latest[status.deployment] = failure
        for deployment, failure in latest.items():
            if failure.at > self.written_at.get(deployment, 0.0):
                note_deployment_error(
                    slug=deployment,
                    reason=failure.reason,
                    log="\n".join(failure.log),
                    at=datetime.fromtimestamp(failure.at, UTC),
                )
                self.written_at[deployment] = failure.at
