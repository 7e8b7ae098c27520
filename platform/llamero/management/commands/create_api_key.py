"""``manage.py create_api_key``: make a key from the shell; it alone goes to standard output."""

import json
import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from llamero.accounts.models import PRIORITIES, Priority, Team
from llamero.accounts.networks import read_networks
from llamero.accounts.scopes import Scope
from llamero.accounts.services import IssuedKey, issue_api_key
from llamero.limits.models import MOST
from llamero.limits.services import limit_key
from models_registry.models import Model

MAX_DAYS = 36_500
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
# What columns are called here, where that is not their own name.
_OPTIONS = {
    "expires_at": "expires",
    "allowed_models": "models",
    "networks": "ips",
    "concurrent_requests": "concurrent",
    "tokens_per_day": "budget-tokens",
    "tokens_per_month": "budget-tokens",
    "money_per_day": "budget-money",
    "money_per_month": "budget-money",
}
_LIMITS = {
    "requests-per-minute": "allow so many requests in any minute",
    "tokens-per-minute": "allow so many tokens, of prompts and answers, in any minute",
    "concurrent": "allow so many requests at once",
}


class Command(BaseCommand):
    """Issue an API key."""

    help = "Create an API key and print it, alone, on standard output. It is shown only now."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name the options."""
        # A mistake is told below one line of usage, not below one line for every option.
        parser.usage = "%(prog)s --name NAME [options]; --help lists them"
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument("--user", help="whose it is; without a team either, the first admin's")
        parser.add_argument("--team", help="the team it belongs to; beside --user, as a member")
        parser.add_argument(
            "--models",
            type=_words,
            default=[],
            metavar="ID,...",
            help="allow only these, separated by commas",
        )
        parser.add_argument(
            "--scopes",
            type=_scopes,
            default=[],
            metavar="SCOPE,...",
            help=f"allow only these, separated by commas, of {', '.join(Scope)}",
        )
        parser.add_argument(
            "--ips",
            type=_networks,
            default=[],
            metavar="10.0.0.0/8,...",
            help="addresses or networks it may be used from, separated by commas",
        )
        parser.add_argument(
            "--expires",
            type=_time,
            metavar="2030-12-31|30d",
            help="a day or time to come, as 2030-12-31 or 2030-12-31T18:00Z; or 12h, 30d, 8w",
        )
        parser.add_argument(
            "--priority",
            choices=tuple(PRIORITIES),
            default="normal",
            help="which requests go first where some wait for a slot",
        )
        _add_limits(parser)
        parser.add_argument("--json", action="store_true", help="print what was made as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check the names, issue, print."""
        # An empty name is a mistake, as of a variable that is not set: it must not mean the admin.
        team = None if options["team"] is None else _find_team(options["team"])
        if options["user"] is not None:
            user: User | None = _find_user(options["user"])
        else:
            user = None if team else _find_first_admin()
        limits = _read_limits(options)
        try:
            with transaction.atomic():
                issued = issue_api_key(
                    user=user,
                    team=team,
                    name=options["name"],
                    expires_at=options["expires"],
                    allowed_models=[_find_model(slug) for slug in options["models"]],
                    scopes=options["scopes"],
                    networks=options["ips"],
                    priority=PRIORITIES[options["priority"]],
                )
                limit_key(key=issued.key, limits=limits)
        except ValidationError as error:
            raise CommandError(_describe(error)) from None
        self.stdout.write(_as_json(issued, limits) if options["json"] else issued.secret_text)


def _describe(error: ValidationError) -> str:
    """Say which option is wrong, as far as it is one."""
    if not hasattr(error, "error_dict"):
        return "; ".join(error.messages)
    return "; ".join(_describe_field(*one) for one in error.message_dict.items())


def _describe_field(name: str, messages: list[str]) -> str:
    words = " ".join(messages)
    if name == NON_FIELD_ERRORS:
        return words
    return f"--{_OPTIONS.get(name, name.replace('_', '-'))}: {words}"


def _add_limits(parser: ArgumentParser) -> None:
    for name, what in _LIMITS.items():
        parser.add_argument(f"--{name}", type=_count, metavar="N", help=what)
    parser.add_argument("--budget-tokens", type=_count, metavar="N", help="tokens of a window")
    parser.add_argument("--budget-money", type=_money, metavar="0.50", help="money of a window")
    parser.add_argument(
        "--budget-window", choices=("day", "month"), help="what a budget is for; else a month"
    )
    parser.add_argument(
        "--time-zone", metavar="Europe/Berlin", help="where days and months begin; else UTC"
    )


def _read_limits(options: dict[str, Any]) -> dict[str, Any]:
    """Give the limits by the names of their columns."""
    window = options["budget_window"]
    budgets = {name: options[f"budget_{name}"] for name in ("tokens", "money")}
    is_vain = window or options["time_zone"]
    if is_vain and all(budget is None for budget in budgets.values()):
        raise CommandError(
            "--budget-window and --time-zone need --budget-tokens or --budget-money."
        )
    limits = {
        "requests_per_minute": options["requests_per_minute"],
        "tokens_per_minute": options["tokens_per_minute"],
        "concurrent_requests": options["concurrent"],
        **{f"{name}_per_{window or 'month'}": budget for name, budget in budgets.items()},
        "time_zone": options["time_zone"],
    }
    return {name: value for name, value in limits.items() if value is not None}


def _as_json(issued: IssuedKey, limits: dict[str, Any]) -> str:
    key = issued.key
    document = {
        "id": key.pk,
        "key": issued.secret_text,
        "name": key.name,
        "user": key.user.get_username() if key.user else None,
        "team": key.team.name if key.team else None,
        "models": [model.slug for model in key.allowed_models.order_by("slug")],
        "scopes": key.scopes,
        "ips": key.networks,
        "priority": Priority(key.priority).name.lower(),
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        "limits": limits,
    }
    return json.dumps(document, default=str)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:20]) <= MOST:
        raise ArgumentTypeError(f"must be a whole number from 1 to {MOST}")
    return int(text)


def _money(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ArgumentTypeError("must be an amount, as 20 or 0.50") from None


def _words(text: str) -> list[str]:
    """Read words between commas, none of them empty, each once."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ArgumentTypeError("has an empty part between its commas")
    return list(dict.fromkeys(words))


def _scopes(text: str) -> list[Scope]:
    words = _words(text)
    for word in words:
        if word not in Scope.values:
            raise ArgumentTypeError(f"there is no scope {word!r}; there are {', '.join(Scope)}")
    return [Scope(word) for word in words]


def _networks(text: str) -> list[str]:
    try:
        return [str(network) for network in read_networks(_words(text))]
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _time(text: str) -> datetime:
    """Read when a key ends: within a hundred years. A time without a zone is in UTC."""
    now = timezone.now()
    wait = re.fullmatch(r"([0-9]{1,9})([hdw])", text)
    if wait:
        hours = int(wait[1]) * _HOURS[wait[2]]
        ends = now + timedelta(hours=min(hours, 24 * MAX_DAYS + 1))
    else:
        ends = _read_time(text)
    if not now < ends <= now + timedelta(days=MAX_DAYS):
        raise ArgumentTypeError(f"must be to come, within {MAX_DAYS} days")
    return ends


def _read_time(text: str) -> datetime:
    try:
        day = parse_date(text)
        found = datetime.combine(day, time(), UTC) if day else parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError("must be a time, as 2030-12-31 or 2030-12-31T18:00Z, or as 30d")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _find_user(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"There is no user named {username!r}.")
    return user


def _find_first_admin() -> User:
    user = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user is None:
        raise CommandError("There is no admin yet: name a --user or a --team.")
    return user


def _find_team(name: str) -> Team:
    team = Team.objects.filter(name__iexact=name).first()
    if team is None:
        raise CommandError(f"There is no team named {name!r}.")
    return team


def _find_model(slug: str) -> Model:
    model = Model.objects.filter(slug=slug).first()
    if model is None:
        raise CommandError(f"There is no model named {slug!r}.")
    return model
