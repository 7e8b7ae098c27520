"""``manage.py create_api_key``: make a key from the shell; it alone goes to standard output."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from llamero.accounts.services import issue_api_key
from models_registry.models import Model

MAX_DAYS = 36_500


class Command(BaseCommand):
    """Issue an API key."""

    help = "Create an API key and print it, alone, on standard output. It is shown only now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name the options."""
        parser.add_argument("username", help="the user the key acts for")
        parser.add_argument("--name", default="shell", help="what the key is for")
        parser.add_argument("--days", type=_days, help="days until it expires (default: never)")
        parser.add_argument(
            "--model", action="append", default=[], help="allow only this model (repeatable)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Check the names, issue, print."""
        expires_at = None
        if options["days"] is not None:
            expires_at = timezone.now() + timedelta(days=options["days"])
        issued = issue_api_key(
            user=_find_user(options["username"]),
            name=options["name"],
            expires_at=expires_at,
            allowed_models=[_find_model(slug) for slug in options["model"]],
        )
        self.stdout.write(issued.secret_text)


def _days(text: str) -> int:
    """Read how long a key lives: a day at least, a hundred years at most."""
    if not text.isdecimal() or not 1 <= int(text) <= MAX_DAYS:
        raise ArgumentTypeError(f"must be a whole number from 1 to {MAX_DAYS}")
    return int(text)


def _find_user(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user named {username!r}.")
    return user


def _find_model(slug: str) -> Model:
    model = Model.objects.filter(slug=slug).first()
    if model is None:
        raise CommandError(f"There is no model named {slug!r}.")
    return model
