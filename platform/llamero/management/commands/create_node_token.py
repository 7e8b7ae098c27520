"""``manage.py create_node_token``: make a token for worker machines; it alone goes to output."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from llamero.control.node_tokens import issue_node_token


class Command(BaseCommand):
    """Issue a node token."""

    help = "Create a token with which worker machines fetch model files, and print it, alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name the options."""
        parser.add_argument("name", help="which machine, or machines, it is for")

    def handle(self, *args: Any, **options: Any) -> None:
        """Issue, print."""
        try:
            issued = issue_node_token(name=options["name"])
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from None
        self.stdout.write(issued.secret_text)
