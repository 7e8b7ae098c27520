"""``manage.py up``: all of Llamero on this machine, in the foreground."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from llamero.supervisor.parts import ROOT
from llamero.supervisor.ports import read_port


class Command(BaseCommand):
    """Run every part under one supervisor."""

    help = "Run the web server, the control worker, a node and the embedded broker until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the address from the command line or the environment."""
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=read_port, default=os.environ.get("PORT") or "8000")

    def handle(self, *args: Any, **options: Any) -> None:
        """Become the supervisor: it lives long, and needs nothing of Django's memory."""
        roots = os.pathsep.join((str(ROOT), str(ROOT / "platform")))
        environment = {**os.environ, "PYTHONPATH": roots}
        address = (options["host"], str(options["port"]))
        command = [sys.executable, "-m", "llamero.supervisor", str(settings.HOME), *address]
        os.execve(sys.executable, command, environment)
