"""The command that makes keys."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from llamero.accounts.models import ApiKey, Membership, Team
from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import find_caller
from models_registry.models import Model


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("create_api_key", *arguments, stdout=out)
    (line,) = out.getvalue().splitlines()
    return line


def test_the_key_alone_is_printed(ada: User, model: Model) -> None:
    restrictions = ("--models=smol", "--scopes", "inference, models", "--ips=10.0.0.0/8,::1")
    text = run("--name", "ci", "--user", "ada", "--expires", "2d", *restrictions)
    caller = find_caller(text)
    assert caller is not None
    assert caller.user == ada
    assert caller.allowed_models == {model.pk}
    assert caller.scopes == {Scope.INFERENCE, Scope.MODELS}
    assert [str(network) for network in caller.networks] == ["10.0.0.0/8", "::1/128"]
    key = ApiKey.objects.get()
    assert key.name == "ci"
    assert key.expires_at is not None
    assert abs(key.expires_at - timezone.now() - timedelta(days=2)) < timedelta(minutes=1)


def test_what_was_made_is_told_as_json(ada: User, team: Team) -> None:
    Membership.objects.create(team=team, user=ada)
    made = json.loads(
        run(
            "--name=ci",
            "--user=ada",
            "--team=RED",
            "--expires=2090-01-31",
            "--priority=low",
            "--json",
        )
    )
    assert find_caller(made.pop("key")) is not None
    assert made == {
        "id": ApiKey.objects.get().pk,
        "name": "ci",
        "user": "ada",
        "team": "Red",
        "models": [],
        "scopes": [],
        "ips": [],
        "priority": "low",
        "expires_at": datetime(2090, 1, 31, tzinfo=UTC).isoformat(),
        "limits": {},
    }


@pytest.mark.parametrize("name", ["a\nb", "a\x00b", "a\x1b[31m", "\ud800", "a\u2028b"])
def test_a_name_is_one_line(ada: User, name: str) -> None:
    with pytest.raises(CommandError, match="--name: Must be one line"):
        run("--name", name, "--user", "ada")


@pytest.mark.parametrize("option", ["--user", "--team"])
def test_an_empty_owner_is_not_the_admin(ada: User, option: str) -> None:
    User.objects.create_superuser("root")
    with pytest.raises(CommandError, match="named ''"):
        run("--name", "ci", option, "")


def test_without_an_owner_it_is_the_first_admins(ada: User) -> None:
    with pytest.raises(CommandError, match="no admin yet"):
        run("--name=ci")
    root = User.objects.create_superuser("root", password="toor")
    run("--name=ci")
    assert ApiKey.objects.get().user == root


def test_a_team_owns_keys_without_a_user(team: Team) -> None:
    run("--name=ci", "--team=red")
    assert (ApiKey.objects.get().user, ApiKey.objects.get().team) == (None, team)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--user=nobody"], "There is no user named 'nobody'"),
        (["--team=blue"], "There is no team named 'blue'"),
        (["--user=ada", "--models=none"], "There is no model named 'none'"),
        (["--user=ada", "--models=smol,"], "empty part"),
        (["--user=ada", "--team=red"], "ada is no member of Red"),
        (["--user=ada", "--scopes=chat"], "there is no scope 'chat'; there are inference, "),
        (["--user=ada", "--ips=10.0.0.1/8"], "10.0.0.0/8 may be meant"),
        (["--user=ada", "--priority=top"], "choose from .?low.?, .?normal.?, .?high"),
        (["--user=ada", "--ips=example.org"], "is no address or network"),
        (["--user=ada", f"--name={'x' * 101}"], "at most 100 characters"),
        (["--user=ada", "--name="], "^--name: This field cannot be blank"),
    ],
)
def test_what_is_wrong_is_named(
    ada: User, team: Team, model: Model, arguments: list[str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        run("--name=ci", *arguments)
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(
    "text", ["0d", "-1d", "1.5d", "999999999w", "soon", "30", "2001-01-01", ""]
)
def test_a_key_ends_at_a_time_to_come(ada: User, text: str) -> None:
    with pytest.raises(CommandError, match="--expires: must be"):
        run("--name=ci", "--user=ada", f"--expires={text}")
    assert not ApiKey.objects.exists()
