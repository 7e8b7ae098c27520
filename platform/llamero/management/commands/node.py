"""``manage.py node``: the node agent, which itself knows no Django."""

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from llamero.supervisor.parts import ROOT


class Command(BaseCommand):
    """Run the node agent with this project's broker address."""

    help = "Run the agent that starts and watches this machine's replicas."
    # Checks take a second of each start; make lint runs them.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Become the agent."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "platform"))),
            "LLAMERO_REDIS_URL": settings.REDIS_URL,
        }
        os.execve(sys.executable, [sys.executable, "-m", "inference.node"], environment)
