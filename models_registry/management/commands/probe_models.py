"""Probe the models that the installed build of the engine has not probed."""

from typing import Any

from django.core.management.base import BaseCommand

from models_registry.models import VersionState
from models_registry.services.probing import find_unprobed, probe_again


class Command(BaseCommand):
    """Load each in a process of its own; what does not pass is taken out of service."""

    help = "Probe ready versions again after the engine was updated; a second run does nothing."
    requires_system_checks: tuple[str, ...] = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Say which passed."""
        for version in find_unprobed():
            if probe_again(version):
                version.refresh_from_db()
                is_good = version.state == VersionState.READY
                self.stdout.write(f"{version}: {'passed' if is_good else version.reason}")
