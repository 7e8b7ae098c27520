"""All parts as separate services over a real model: each may be stopped alone."""

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.protocol.replicas import ReplicaState
from inference.relay.connect import connect
from inference.relay.registry import ReplicaRegistry
from tests.inference.relay.broker import Broker
from tests.live import manage
from tests.processes import ROOT, child_environment, find_free_port, wait_until
from tests.tiny_model import CONTEXT_LENGTH, write_tiny_model

DRAIN_SECONDS = "20"
MODEL = "chat"
PREPARE_PROGRAM = """
from pathlib import Path
from django.conf import settings
from django.contrib.auth.models import User
from llamero.accounts.services import issue_api_key
from llamero.control.node_tokens import issue_node_token
from models_registry.services.deployments import create_deployment
from models_registry.services.importing import import_model_files
user = User.objects.create_superuser("admin", password="admin")
(settings.HOME / "key").write_text(issue_api_key(user=user, name="key").secret_text)
(settings.HOME / "token").write_text(issue_node_token(name="nodes").secret_text)
version = import_model_files(paths=[Path({path!r})], slug={slug!r})
create_deployment(model=version.model, **{profile!r})
"""
PROFILE: dict[str, Any] = {
    "context_length": CONTEXT_LENGTH,
    "num_slots": 8,
    "num_threads": 1,
    "min_replicas": 2,
    "max_replicas": 2,
    "is_deterministic": True,
}


@dataclass(frozen=True, slots=True)
class Place:
    """A host as the parts on it see it; ``prefix`` are the words that start a program there."""

    name: str
    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()


class Part:
    """One service, which may be started again."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._command, self._environment, self._log = command, environment, log
        self.start()

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )

    def stop(self, seconds: float = 45) -> int:
        """Ask it to end; gives its exit code. Raises TimeoutExpired if that takes too long."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait()


class System:
    """A broker, a control worker, gateways, and a node agent at each of some places."""

    def __init__(
        self, folder: Path, control: Place, nodes: Sequence[Place], model: Path | None
    ) -> None:
        self.folder = folder
        self.control_place = control
        self._model = model or folder / "tiny.gguf"
        self._port = find_free_port()
        # Clients of this machine use the socket; other hosts come over TCP.
        options = {"port": str(self._port), "bind": control.address, "protected-mode": "no"}
        self.broker = Broker(folder, prefix=control.prefix, **options)
        self.broker.start()
        self.redis = connect(self.broker.url)
        self.home = folder / "home"
        self.home.mkdir()
        self._prepare()
        self.gateways: dict[int, Part] = {}
        self.parts: dict[str, Part] = {}
        for _ in range(2):
            self._start_gateway()
        self.parts["control"] = self._start(control, "control", [*_manage(), "control"], self.home)
        for place in nodes:
            self._start_node(place)

    @property
    def key(self) -> str:
        """An API key."""
        return (self.home / "key").read_text()

    @property
    def ports(self) -> list[int]:
        """Where the gateways listen."""
        return list(self.gateways)

    def log(self, name: str) -> str:
        """What a part has printed so far."""
        return (self.folder / f"{name}.log").read_text()

    def ready(self) -> list[str]:
        """Name the ready replicas."""
        statuses = ReplicaRegistry(self.redis).list()
        return [one.replica for one in statuses if one.state is ReplicaState.READY]

    def wait_until_ready(self, num_replicas: int = 2, seconds: float = 90) -> None:
        """Return when so many replicas are ready."""
        what = f"{num_replicas} ready replicas"
        wait_until(lambda: len(self.ready()) >= num_replicas, seconds=seconds, what=what)

    def wait_until_listening(self, port: int) -> None:
        """Return when a gateway answers."""
        place = self.control_place
        program = f"import socket; socket.create_connection(({place.address!r}, {port}), 1)"
        command = [*place.prefix, sys.executable, "-c", program]

        def listens() -> bool:
            return not subprocess.run(command, capture_output=True, check=False).returncode

        wait_until(listens, seconds=60, what="a gateway")

    def close(self) -> None:
        """End everything."""
        for part in (*self.gateways.values(), *self.parts.values()):
            with contextlib.suppress(ProcessLookupError):
                part.kill()
        self.broker.stop()

    def _prepare(self) -> None:
        if not self._model.exists():
            write_tiny_model(self._model)
        manage(self.home, "migrate", "--verbosity=0")
        program = PREPARE_PROGRAM.format(path=str(self._model), slug=MODEL, profile=PROFILE)
        manage(self.home, "shell", "--verbosity=0", "-c", program)

    def _start_gateway(self) -> None:
        port, place = find_free_port(), self.control_place
        words = [*_manage(), "serve", "--host", place.address, "--port", str(port)]
        self.gateways[port] = self._start(place, f"gateway-{port}", words, self.home)

    def _start_node(self, place: Place) -> None:
        home = self.folder / place.name
        home.mkdir()
        self.parts[place.name] = self._start(
            place,
            place.name,
            [sys.executable, "-m", "inference.node"],
            home,
            LLAMERO_NODE=place.name,
            LLAMERO_CONTROL_URL=f"http://{self.control_place.address}:{self.ports[0]}",
            LLAMERO_NODE_TOKEN=(self.home / "token").read_text(),
        )

    def _start(self, place: Place, name: str, command: list[str], home: Path, **extra: str) -> Part:
        address = self.control_place.address
        environment = child_environment(
            LLAMERO_HOME=str(home),
            LLAMERO_REDIS_URL=f"redis://{address}:{self._port}/0",
            LLAMERO_ALLOWED_HOSTS=address,
            LLAMERO_DRAIN_SECONDS=DRAIN_SECONDS,
            LLAMERO_WEB_DRAIN_SECONDS=DRAIN_SECONDS,
            **extra,
        )
        return Part([*place.prefix, *command], environment, self.folder / f"{name}.log")


def _manage() -> list[str]:
    return [sys.executable, str(ROOT / "manage.py")]


@contextlib.contextmanager
def open_system(
    control: Place, nodes: Sequence[Place], model: Path | None = None
) -> Iterator[System]:
    """Build a system with ready replicas of a model, a tiny one unless told, and tear it down."""
    with tempfile.TemporaryDirectory(prefix="chaos") as folder:
        system = System(Path(folder), control, nodes, model)
        try:
            for port in system.ports:
                system.wait_until_listening(port)
            system.wait_until_ready()
            yield system
        except Exception:
            for log in sorted(Path(folder).glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-1500:]}")
            raise
        finally:
            system.close()
