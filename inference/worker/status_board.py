"""What the replica says of itself in its heartbeat."""

import os
import time

import msgspec

from inference.protocol.replicas import ReplicaState, ReplicaStatus
from inference.worker.first_tokens import FirstTokens
from inference.worker.heartbeat import resident_bytes
from inference.worker.loading import LoadedEngine
from inference.worker.settings import WorkerSettings
from inference.worker.watchdog import Standstill


class StatusBoard:
    """Written by whoever moves the replica on, read by the heartbeat's thread."""

    def __init__(self, settings: WorkerSettings, first_tokens: FirstTokens | None = None) -> None:
        self.state = ReplicaState.STARTING
        self.progress = 0.0
        self.reason = ""
        self.bad_sha256 = ""
        self.engine: LoadedEngine | None = None
        self._settings = settings
        self._first_tokens = first_tokens or FirstTokens()
        self._started_at = time.time()

    def report_progress(self, progress: float) -> None:
        """Take the loaded share of the model, 0 to 1."""
        self.progress = progress

    def show_standstill(self, standstill: Standstill) -> bool:
        """Show that the engine has stopped making steps, or makes them again; tells of a change."""
        before = self.state
        if standstill.is_stalled and self.state in (ReplicaState.READY, ReplicaState.STALLED):
            self.state = ReplicaState.STALLED
            self.reason = f"The engine has made no step for {standstill.seconds:.0f} s."
        elif self.state is ReplicaState.STALLED:
            self.state, self.reason = ReplicaState.READY, ""
        return self.state is not before

    def describe(self) -> ReplicaStatus:
        """Give the present status."""
        spec = self._settings.spec
        status = ReplicaStatus(
            replica=spec.replica,
            deployment=spec.deployment,
            node=self._settings.node,
            state=self.state,
            pid=os.getpid(),
            started_at=self._started_at,
            progress=self.progress,
            reason=self.reason,
            bad_sha256=self.bad_sha256,
            kind=spec.kind,
            num_slots=spec.profile.num_slots,
            generation=spec.generation,
            memory_bytes=resident_bytes(),
            num_failures=self._settings.num_failures,
        )
        return status if self.engine is None else self._add_engine(status, self.engine)

    def _add_engine(self, status: ReplicaStatus, engine: LoadedEngine) -> ReplicaStatus:
        return msgspec.structs.replace(
            status,
            facts=engine.model.facts(),
            stats=engine.runner.stats(),
            slots=engine.runner.slots(),
            ttft_seconds=self._first_tokens.typical(),
            first_token_seconds=self._first_tokens.latest(),
        )
