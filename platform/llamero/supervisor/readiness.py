"""Whether everything is up: the gateway listens, and each deployment has a replica or a reason."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from inference.protocol.replicas import ReplicaState, ReplicaStatus
from inference.relay.connect import UNREACHABLE, RedisError, SyncRedis
from inference.relay.registry import ReplicaRegistry
from llamero.supervisor.ports import is_listening


class Expected(msgspec.Struct, frozen=True):
    """What bootstrap reports: the deployments that should run, and a chat model to try."""

    deployments: tuple[str, ...] = ()
    chat_model: str = ""

    @classmethod
    def read(cls, path: Path) -> "Expected":
        """Read the report that bootstrap wrote."""
        return msgspec.json.decode(path.read_bytes(), type=cls)

    def write(self, path: Path) -> None:
        """Write the report."""
        path.write_bytes(msgspec.json.encode(self))


class Readiness:
    """Follows the start. ``news`` gives each change once; then ``is_complete`` tells the rest."""

    def __init__(self, redis: SyncRedis, expected: Expected, *, host: str, port: int) -> None:
        self._replicas = ReplicaRegistry(redis)
        self._host, self._port = host, port
        self._is_web_up = False
        self._waiting = set(expected.deployments)
        self._told: dict[str, str] = {}
        self.failures: list[str] = []

    @property
    def is_complete(self) -> bool:
        """Whether the gateway is up and every deployment is ready or has failed."""
        return self._is_web_up and not self._waiting

    def news(self) -> Iterator[str]:
        """Look once, and give a line for each thing that changed."""
        if not self._is_web_up and is_listening(self._host, self._port):
            self._is_web_up = True
            yield "web server is up"
        for deployment in sorted(self._waiting):
            line = self._look(deployment)
            if line and self._told.get(deployment) != line:
                self._told[deployment] = line
                yield line

    def _look(self, deployment: str) -> str:
        try:
            statuses = self._replicas.list(deployment)
        except (*UNREACHABLE, RedisError):
            return ""
        if any(status.state is ReplicaState.READY for status in statuses):
            self._waiting.discard(deployment)
            return f"{deployment} is ready"
        failed = next((one for one in statuses if one.state is ReplicaState.FAILED), None)
        if failed is not None:
            self._waiting.discard(deployment)
            self.failures.append(f"{deployment} failed: {failed.reason or 'no reason given'}")
            return self.failures[-1]
        return f"loading {deployment}…{_percent(statuses)}"


def _percent(statuses: tuple[ReplicaStatus, ...] | list[ReplicaStatus]) -> str:
    tenths = int(10 * max((status.progress for status in statuses), default=0.0))
    return f" {tenths * 10} %" if tenths else ""
