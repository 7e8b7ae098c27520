"""The agent's loop: make what runs on this machine match what the controller wants."""

import logging
import os
import time
from collections.abc import Callable

from inference.node.devices import list_devices, memory_bytes, num_usable_cores
from inference.node.seat import Seat
from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaSpec, ReplicaState
from inference.relay.connect import RedisError, SyncRedis
from inference.relay.desired import DesiredState
from inference.relay.reaper import fail_jobs_of
from inference.relay.registry import ReplicaRegistry

logger = logging.getLogger(__name__)
STEP_SECONDS = 1.0
DEVICE_SECONDS = 10.0


class NodeAgent:
    """Starts, watches and stops the replicas of one node; used by the process's main thread.

    While the server is out of reach it keeps what runs running.
    """

    def __init__(self, redis: SyncRedis, node: str) -> None:
        self.node = node
        self._redis = redis
        self._desired = DesiredState(redis)
        self._registry = ReplicaRegistry(redis)
        self._seats: dict[str, Seat] = {}
        self._lost: dict[str, int] = {}
        self._started_at = time.time()
        self._devices = list_devices()
        self._devices_at = time.monotonic()
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
        except (RedisError, OSError) as error:
            logger.warning("the server is out of reach, replicas stay as they are: %s", error)
        if not self.is_draining:
            self._start_due(now)

    def ask_all_to_stop(self) -> None:
        """Begin to drain every replica and start none; safe in a signal handler."""
        self.is_draining = True
        now = time.monotonic()
        for seat in list(self._seats.values()):
            seat.stop(now)

    def wait_for_stops(self, wait: Callable[[float], None]) -> None:
        """Return when every replica has ended; those that take too long are killed."""
        self.ask_all_to_stop()
        while any(seat.process for seat in self._seats.values()):
            wait(0.1)
            self._collect_exits(time.monotonic())
        try:
            self._settle_losses()
            for replica in self._seats:
                self._registry.remove(replica)
            self._desired.remove_node(self.node)
        except (RedisError, OSError) as error:
            logger.warning("could not sign off, leases will run out: %s", error)

    def _collect_exits(self, now: float) -> None:
        for replica, seat in list(self._seats.items()):
            pid = seat.process.pid if seat.process else 0
            if not seat.collect_exit(now):
                continue
            self._lost[replica] = pid
            if seat.is_stopping:
                logger.info("replica %s stopped", replica)
            else:
                logger.warning("replica %s ended, %s", replica, seat.reason)

    def _settle_losses(self) -> None:
        """End the jobs of replicas that ended, as soon as the server can be told."""
        for replica, pid in list(self._lost.items()):
            seat = self._seats.get(replica)
            status = self._registry.get(replica)
            has_said_why = status and status.pid == pid and status.state is ReplicaState.FAILED
            if seat and status and has_said_why:
                seat.explain(status.reason)
            for job in fail_jobs_of(self._redis, replica):
                logger.warning("job %s was lost with replica %s", job, replica)
            del self._lost[replica]

    def _follow(self, specs: tuple[ReplicaSpec, ...] | None, now: float) -> None:
        if specs is None:  # never told, or the server lost its data: no reason to stop anything
            return
        wanted = {spec.replica: spec for spec in specs}
        for replica, seat in list(self._seats.items()):
            if wanted.get(replica) != seat.spec:
                seat.stop(now)
                if seat.process is None:
                    self._registry.remove(replica)
                    del self._seats[replica]
        for replica, spec in wanted.items():
            if replica not in self._seats:
                self._seats[replica] = Seat(spec, self.node)

    def _start_due(self, now: float) -> None:
        for replica, seat in self._seats.items():
            if seat.start_if_due(now) and seat.process:
                logger.info("replica %s started as process %d", replica, seat.process.pid)

    def _report(self, now: float) -> None:
        for seat in self._seats.values():
            if seat.process is None and not seat.is_stopping:
                self._registry.beat(seat.status(now))
        if now - self._devices_at >= DEVICE_SECONDS:
            self._devices, self._devices_at = list_devices(), now
        total, free = memory_bytes()
        self._desired.beat_node(
            NodeStatus(
                node=self.node,
                pid=os.getpid(),
                started_at=self._started_at,
                num_cores=num_usable_cores(),
                memory_total_bytes=total,
                memory_free_bytes=free,
                devices=self._devices,
                replicas=tuple(sorted(self._seats)),
                is_draining=self.is_draining,
            )
        )
