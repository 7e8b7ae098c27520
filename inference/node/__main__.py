"""Run the node agent: ``python -m inference.node``."""

import logging
import os
import select
import signal
import socket
import sys
import threading
from pathlib import Path
from types import FrameType

from inference.health.port import open_health_port
from inference.node.agent import STEP_SECONDS, NodeAgent
from inference.node.fetching import ControlPlane
from inference.node.file_cache import FileCache
from inference.node.hosted_replica import read_stop_seconds
from inference.node.model_files import ModelFiles
from inference.node.orphan import die_with_parent
from inference.relay.connect import SyncRedis, connect
from inference.relay.mailbox import WakeInbox

LISTEN_SECONDS = 4.0


class Alarm:
    """Wakes the main thread from other threads, and for every signal the process gets."""

    def __init__(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)

    def ring(self) -> None:
        """Wake the main thread."""
        try:
            self._sender.send(b"\0")
        except BlockingIOError:
            return  # it has enough to wake up for

    def wait(self, seconds: float) -> None:
        """Sleep until a ring or a signal, at most ``seconds``."""
        if select.select([self._receiver], [], [], seconds)[0]:
            self._receiver.recv(4096)


def main() -> int:
    """Reconcile until SIGTERM or SIGINT, then stop every replica."""
    die_with_parent()
    try:
        redis, agent = set_up()
    except ValueError as error:
        sys.exit(f"The node agent cannot start: {error}")
    alarm = Alarm()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        agent.ask_all_to_stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)  # wakes the alarm, no more
    threading.Thread(target=_pass_on_wakes, args=(redis, agent.node, alarm), daemon=True).start()
    while not agent.is_draining:
        agent.step()
        alarm.wait(STEP_SECONDS)
    agent.wait_for_stops(alarm.wait)
    return 0


def set_up() -> tuple[SyncRedis, NodeAgent]:
    """Make the agent that the environment describes; raises ValueError for a bad variable."""
    logging.basicConfig(
        level=os.environ.get("LLAMERO_LOG_LEVEL") or "INFO", format="%(levelname)s %(message)s"
    )
    read_stop_seconds()
    redis = connect()
    agent = NodeAgent(redis, os.environ.get("LLAMERO_NODE") or socket.gethostname(), read_files())
    open_health_port(agent.live, agent.ready, agent.judge_replica)
    return redis, agent


def read_files() -> ModelFiles:
    """Set up where model files come from; raises ValueError for a bad variable.

    Without LLAMERO_CONTROL_URL they must lie where the control plane has them: shared storage.
    """
    home = Path(os.environ.get("LLAMERO_HOME") or "var")
    limit = os.environ.get("LLAMERO_NODE_CACHE_BYTES") or "0"
    if not limit.isdecimal():
        raise ValueError("LLAMERO_NODE_CACHE_BYTES must be a whole number of bytes")
    url, token = os.environ.get("LLAMERO_CONTROL_URL"), os.environ.get("LLAMERO_NODE_TOKEN")
    if url and not token:
        raise ValueError("LLAMERO_NODE_TOKEN is not set; LLAMERO_CONTROL_URL gives files for one.")
    source = ControlPlane(url, token) if url and token else None
    return ModelFiles(FileCache(home / "fetched", int(limit)), source)


def _pass_on_wakes(redis: SyncRedis, node: str, alarm: Alarm) -> None:
    inbox = WakeInbox(redis, node)
    while True:
        if inbox.listen(LISTEN_SECONDS):
            alarm.ring()


if __name__ == "__main__":
    sys.exit(main())
