"""``manage.py control``: the control worker."""

import os
import socket
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Run the control worker."""

    help = "Run the worker that reconciles deployments, reaps lost jobs and runs control tasks."
    # Checks take a second of each start; make lint runs them.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Work until told to stop."""
        from llamero.control.worker import run_control_worker

        sys.exit(run_control_worker(f"control-{os.getpid()}@{socket.gethostname()}"))
