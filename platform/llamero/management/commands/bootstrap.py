"""``manage.py bootstrap``: bring a home up to date; the first time, make what it needs."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from llamero.env import env
from llamero.supervisor.home import Home


class Command(BaseCommand):
    """Migrate, then make what a first run needs."""

    help = "Migrate the database; make an admin, demo models and a demo key where none were made."
    # Checks take a second of each start; make lint runs them.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to report to the supervisor."""
        parser.add_argument("--report", type=Path, help="File for the list of deployments.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do each step that is not done yet."""
        from llamero import first_run

        home = Home(settings.HOME)
        call_command("migrate", interactive=False, verbosity=0, stdout=self.stdout)
        self.stdout.write("the database is up to date")
        # Before anything can load them.
        call_command("probe_models", stdout=self.stdout)
        if first_run.make_admin(home):
            self.stdout.write(f"made the user admin; its password is in {home.admin_password}")
        # Off where an operator brings their own models.
        if env.bool("LLAMERO_DEMO_MODELS", default=True):
            first_run.fetch_demo_models(self.stdout)
        if first_run.make_demo_key(home):
            self.stdout.write(f"made a demo API key in {home.demo_key}")
        if options["report"]:
            first_run.write_report(options["report"])
