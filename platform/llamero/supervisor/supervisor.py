"""Start all parts in order, keep them alive, and end them in order."""

import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType

from inference.relay.connect import UNREACHABLE, RedisError, connect
from llamero.supervisor.children import Child, Part
from llamero.supervisor.home import Home, StartRefused
from llamero.supervisor.output import say, show
from llamero.supervisor.parts import (
    STOP_ORDER,
    bootstrap_part,
    child_environment,
    django_parts,
    node_part,
    valkey_part,
)
from llamero.supervisor.ports import check_port
from llamero.supervisor.readiness import Expected, Readiness
from llamero.supervisor.welcome import welcome

POLL_SECONDS = 0.2
IDLE_POLL_SECONDS = 1.0
BROKER_SECONDS = 15.0


class Supervisor:
    """All parts of one home, on one address."""

    def __init__(self, home: Home, *, host: str, port: int) -> None:
        self.home, self.host, self.port = home, host, port
        self._children: dict[str, Child] = {}
        self._stop = threading.Event()
        self._outer_redis = os.environ.get("LLAMERO_REDIS_URL", "")
        self.redis_url = self._outer_redis or f"unix://{home.socket}"
        self._environment = child_environment(os.environ, home, self.redis_url)

    def run(self) -> int:
        """Run until told to stop; raises StartRefused when it cannot begin."""
        try:
            self.home.prepare()
        except OSError as error:
            raise StartRefused(
                f"Cannot keep state in {self.home.path}: {error.strerror or error}.\n"
                "Choose another folder: LLAMERO_HOME=/some/folder"
            ) from None
        with self.home.lock():
            check_port(self.host, self.port)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self._on_signal)
            try:
                return self._run()
            finally:
                self._end()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """Stop in order; a second signal stops at once."""
        if self._stop.is_set():
            for child in self._children.values():
                child.kill()
        self._stop.set()

    def _run(self) -> int:
        say(f"starting in {self.home.path}")
        if not self._outer_redis:
            self._start_broker()
        self._adopt(node_part())
        if not self._bootstrap():
            return 0 if self._stop.is_set() else 1
        for part in django_parts(self.host, self.port):
            self._adopt(part)
        self._wait_until_ready()
        while not self._stop.wait(IDLE_POLL_SECONDS):
            self._keep_alive()
        return 0

    def _adopt(self, part: Part) -> Child:
        child = Child(part, self._environment, self.home.logs)
        self._children[part.name] = child
        child.start()
        return child

    def _start_broker(self) -> None:
        """Start the embedded server and wait for its first answer."""
        self.home.socket.unlink(missing_ok=True)
        child = self._adopt(valkey_part(self.home))
        end = time.monotonic() + BROKER_SECONDS
        with connect(self.redis_url) as redis:
            while not self._stop.is_set():
                try:
                    redis.ping()
                except (*UNREACHABLE, RedisError):
                    self._check_start(child, end)
                    self._stop.wait(0.05)
                else:
                    return

    def _check_start(self, child: Child, end: float) -> None:
        log = self.home.logs / "valkey.log"
        if child.exit_code() is not None:
            raise StartRefused(f"The embedded server ended at once; the cause is in {log}")
        if time.monotonic() > end:
            raise StartRefused(f"The embedded server does not answer; see {log}")

    def _bootstrap(self) -> bool:
        """Migrate and make what is missing; give whether that went well."""
        child = self._adopt(bootstrap_part(self.home))
        while child.exit_code() is None and not self._stop.wait(POLL_SECONDS / 4):
            pass
        if self._stop.is_set():
            return False
        del self._children[child.part.name]
        child.close()
        if child.exit_code() != 0:
            say(f"setup failed; the cause is above, and in {self.home.logs / 'setup.log'}")
        return child.exit_code() == 0

    def _wait_until_ready(self) -> None:
        """Report the progress of the start, then welcome."""
        expected = Expected.read(self.home.report)
        with connect(self.redis_url) as redis:
            readiness = Readiness(redis, expected, host=self.host, port=self.port)
            while not readiness.is_complete:
                for line in readiness.news():
                    say(line)
                if self._stop.wait(POLL_SECONDS):
                    return
                self._keep_alive()
        show(welcome(self.home, self.host, self.port, expected.chat_model, readiness.failures))

    def _keep_alive(self) -> None:
        for child in self._children.values():
            child.keep_alive()

    def _end(self) -> None:
        say("stopping")
        for name in ("setup", *STOP_ORDER):
            if child := self._children.get(name):
                # Nobody asks anything of control once the web server is gone.
                if name == "node" and (control := self._children.get("control")):
                    control.ask_to_stop()
                child.stop()
        self.home.report.unlink(missing_ok=True)
        say("stopped")


def supervise(home: Path, *, host: str, port: int) -> int:
    """Run Llamero in a home; give the exit code."""
    try:
        return Supervisor(Home(home), host=host, port=port).run()
    except StartRefused as refusal:
        for line in str(refusal).splitlines():
            say(line)
        return 1
