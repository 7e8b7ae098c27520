"""One desired replica on this node: whether it runs, waits to be restarted, or has failed."""

import os
import signal
import time

from inference.node.model_files import ModelFiles
from inference.node.replica_process import ReplicaProcess
from inference.node.restart_policy import RestartPolicy
from inference.protocol.draining import read_drain_seconds
from inference.protocol.replicas import ReplicaFailure, ReplicaSpec, ReplicaState, ReplicaStatus
from inference.relay.reaper import ReplicaEnd

# On top of its drain: a replica says how it ended, too.
SIGN_OFF_SECONDS = 1.5
# What an operator or the kernel's memory killer sends: no fault of the replica's own code.
KILL_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def read_stop_seconds() -> float:
    """Give how long a replica may take to drain and say so; raises ValueError for a bad one."""
    return read_drain_seconds(os.environ) + SIGN_OFF_SECONDS


class HostedReplica:
    """Holds a spec's process through starts, exits and stops; the agent passes the clock in."""

    def __init__(self, spec: ReplicaSpec, node: str, files: ModelFiles) -> None:
        self.spec = spec
        self.process: ReplicaProcess | None = None
        self.reason = ""
        self._bad_sha256 = ""
        self._failure: ReplicaFailure | None = None
        self._node = node
        self._files = files
        self._policy = RestartPolicy()
        self._kill_at: float | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether the replica was asked to end and must not be restarted."""
        return self._kill_at is not None

    def start_if_due(self, now: float) -> bool:
        """Start the process unless it runs, stops, pauses or lacks files; tells if it did."""
        if self.process or self.is_stopping or not self._policy.can_start(now):
            return False
        try:
            if (local := self._files.localize(self.spec)) is None:
                return False
            self.process = ReplicaProcess(local, self._node, self._policy.num_failures(now))
        except OSError as error:
            self.reason = f"could not start: {error}"
            self._note_failure(())
            self._policy.record_failure(now)
            return False
        return True

    def stop(self, now: float) -> None:
        """Ask the process to drain and end; ``collect_exit`` kills one that takes too long."""
        if not self.is_stopping:
            self._kill_at = now + read_stop_seconds()
            if self.process:
                self.process.ask_to_stop()

    def collect_exit(self, now: float) -> ReplicaEnd | None:
        """Notice that the process ended, and plan the next start; tells how, once per process."""
        if self.process is None:
            return None
        if self._kill_at is not None and now >= self._kill_at:
            self.process.kill()
        code = self.process.exit_code()
        if code is None:
            return None
        end = ReplicaEnd.ORDERLY
        if not self.is_stopping:
            self.reason = self.process.describe_exit()
            self._note_failure(self.process.last_lines())
            self._policy.record_failure(now)
            if code != 0:
                end = ReplicaEnd.KILLED if -code in KILL_SIGNALS else ReplicaEnd.CRASHED
        self.process = None
        return end

    def excuse(self) -> None:
        """Do not hold the last end against a replica that served until somebody killed it."""
        self._policy.forget_last()

    def explain(self, last: ReplicaStatus) -> None:
        """Replace the reason of the last failure by the replica's own words."""
        self.reason, self._bad_sha256 = last.reason, last.bad_sha256
        self._note_failure(self._failure.log if self._failure else ())

    def _note_failure(self, log: tuple[str, ...]) -> None:
        self._failure = ReplicaFailure(at=time.time(), reason=self.reason, log=log)

    def status(self, now: float) -> ReplicaStatus:
        """Describe a replica that is not running, in place of its own heartbeat."""
        progress = 0.0
        if self._policy.has_given_up:
            state, reason = ReplicaState.FAILED, self.reason
        elif self._files.lacks(self.spec):
            state = ReplicaState.STARTING
            reason, progress = self._files.describe(self.spec)
        else:
            state, reason = ReplicaState.STARTING, self.reason
            if seconds := self._policy.seconds_left(now):
                reason = f"Restarts in {seconds:.0f} s. Last failure: {self.reason}"
        return ReplicaStatus(
            replica=self.spec.replica,
            deployment=self.spec.deployment,
            node=self._node,
            state=state,
            progress=progress,
            reason=reason,
            bad_sha256=self._bad_sha256,
            kind=self.spec.kind,
            num_slots=self.spec.profile.num_slots,
            generation=self.spec.generation,
            failure=self._failure,
            num_failures=max(self._policy.num_failures(now), self._files.num_failures(self.spec)),
        )
