"""The agent's loop: make what runs on this machine match what the controller wants."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from inference.health.progress import Check, Progress
from inference.node.devices import DeviceList, num_usable_cores
from inference.node.hosted_replica import HostedReplica
from inference.node.model_files import ModelFiles
from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaSpec, ReplicaState
from inference.relay.connect import RedisError, SyncRedis
from inference.relay.desired import DesiredState
from inference.relay.reaper import ReplicaEnd, reap
from inference.relay.registry import ReplicaRegistry

logger = logging.getLogger(__name__)
STEP_SECONDS = 1.0
# A step may hash nothing and fetch nothing: it takes milliseconds, and seconds on a busy machine.
STUCK_SECONDS = 60.0
UNHEARD_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Loss:
    """A replica's process that ended, and how."""

    pid: int
    end: ReplicaEnd


class NodeAgent:
    """Starts, watches and stops the replicas of one node; used by the process's main thread.

    While the server is out of reach it keeps what runs running.
    """

    def __init__(self, redis: SyncRedis, node: str, files: ModelFiles) -> None:
        self.node = node
        self._files = files
        self._redis = redis
        self._desired = DesiredState(redis)
        self._registry = ReplicaRegistry(redis)
        self._hosted: dict[str, HostedReplica] = {}
        self._lost: dict[str, Loss] = {}
        self._started_at = time.time()
        self._devices = DeviceList()
        self._progress = Progress()
        self.live: dict[str, Check] = {"loop": self._progress.within("loop", STUCK_SECONDS)}
        self.ready: dict[str, Check] = {
            "broker": self._progress.within("broker", UNHEARD_SECONDS),
            "draining": lambda: "it stops" if self.is_draining else "",
        }
        self.is_draining = False

    def step(self) -> None:
        """Notice exits, follow the desired state, report."""
        now = time.monotonic()
        self._collect_exits(now)
        try:
            if not self.is_draining:
                self._follow(self._desired.read(self.node), now)
            self._settle_losses()
            self._report(now)
            self._progress.note("broker")
        except (RedisError, OSError) as error:
            logger.warning("the server is out of reach, replicas stay as they are: %s", error)
        if not self.is_draining:
            self._start_due(now)
        self._progress.note("loop")

    def ask_all_to_stop(self) -> None:
        """Begin to drain every replica and start none; safe in a signal handler."""
        self.is_draining = True
        now = time.monotonic()
        for hosted in list(self._hosted.values()):
            hosted.stop(now)

    def wait_for_stops(self, wait: Callable[[float], None]) -> None:
        """Return when every replica has ended; those that take too long are killed."""
        self.ask_all_to_stop()
        while any(hosted.process for hosted in self._hosted.values()):
            wait(0.1)
            self._collect_exits(time.monotonic())
            self._progress.note("loop")
        try:
            self._settle_losses()
            for replica in self._hosted:
                self._registry.remove(replica)
            self._desired.remove_node(self.node)
        except (RedisError, OSError) as error:
            logger.warning("could not sign off, leases will run out: %s", error)

    def judge_replica(self, replica: str) -> str:
        """Say why a replica of this node does not serve, by its own last word; safe in any thread.

        One whose engine stands still says so itself.
        """
        if replica not in self._hosted:
            return "it is not of this node"
        try:
            status = self._registry.get(replica)
        except (RedisError, OSError):
            return "the broker does not answer"
        if status is None:
            return "it is not heard of"
        is_ready = status.state is ReplicaState.READY
        return "" if is_ready else f"{status.state.value}. {status.reason}".strip()

    def _collect_exits(self, now: float) -> None:
        for replica, hosted in list(self._hosted.items()):
            pid = hosted.process.pid if hosted.process else 0
            end = hosted.collect_exit(now)
            if end is None:
                continue
            self._lost[replica] = Loss(pid, end)
            if hosted.is_stopping:
                logger.info("replica %s stopped", replica)
            else:
                logger.warning("replica %s ended, %s", replica, hosted.reason)

    def _settle_losses(self) -> None:
        """Let others go on with the jobs of replicas that ended, as soon as the server hears it."""
        for replica, loss in list(self._lost.items()):
            hosted = self._hosted.get(replica)
            status = self._registry.get(replica)
            if hosted and status and status.pid == loss.pid:
                if status.state is ReplicaState.FAILED:
                    hosted.explain(status)
                elif status.stats.num_steps and loss.end is ReplicaEnd.KILLED:
                    hosted.excuse()
            reaped = reap(self._redis, replica, loss.end)
            if reaped.queued or reaped.ended:
                logger.warning(
                    "%d jobs of %s wait again, %d have ended",
                    len(reaped.queued),
                    replica,
                    len(reaped.ended),
                )
            del self._lost[replica]

    def _follow(self, specs: tuple[ReplicaSpec, ...] | None, now: float) -> None:
        if specs is None:  # never told, or the server lost its data: no reason to stop anything
            return
        wanted = {spec.replica: spec for spec in specs}
        for replica, hosted in list(self._hosted.items()):
            if wanted.get(replica) != hosted.spec:
                hosted.stop(now)
                if hosted.process is None:
                    self._registry.remove(replica)
                    del self._hosted[replica]
        for replica, spec in wanted.items():
            if replica not in self._hosted:
                self._hosted[replica] = HostedReplica(spec, self.node, self._files)
        self._files.want(hosted.spec for hosted in self._hosted.values())

    def _start_due(self, now: float) -> None:
        for replica, hosted in self._hosted.items():
            # A process that starts before its forerunner's jobs are freed would be blamed for them.
            if replica not in self._lost and hosted.start_if_due(now) and hosted.process:
                logger.info("replica %s started as process %d", replica, hosted.process.pid)

    def _report(self, now: float) -> None:
        for hosted in self._hosted.values():
            if hosted.process is None and not hosted.is_stopping:
                self._registry.beat(hosted.status(now))
        devices = self._devices.read()
        self._desired.beat_node(
            NodeStatus(
                node=self.node,
                pid=os.getpid(),
                started_at=self._started_at,
                num_cores=num_usable_cores(),
                memory_total_bytes=devices[0].total_bytes,
                memory_free_bytes=devices[0].free_bytes,
                devices=devices,
                replicas=tuple(sorted(self._hosted)),
                is_draining=self.is_draining,
                fetches_files=self._files.fetches,
                cache_limit_bytes=self._files.cache.limit_bytes,
                cached_files=self._files.cache.list_files() if self._files.fetches else (),
            )
        )
