"""The command that makes keys."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from llamero.accounts.models import ApiKey
from llamero.accounts.selectors import find_caller
from models_registry.models import Model


def test_the_key_alone_is_printed(ada: User, model: Model) -> None:
    out = StringIO()
    call_command("create_api_key", "ada", name="ci", days=2, model=["smol"], stdout=out)
    (line,) = out.getvalue().splitlines()
    caller = find_caller(line)
    assert caller is not None
    assert caller.allowed_models == {model.pk}
    key = ApiKey.objects.get()
    assert key.name == "ci"
    assert key.expires_at is not None


@pytest.mark.parametrize("arguments", [["nobody"], ["ada", "--model", "none"]])
def test_unknown_names_are_refused(ada: User, arguments: list[str]) -> None:
    with pytest.raises(CommandError, match="There is no"):
        call_command("create_api_key", *arguments)


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "999999999", "soon"])
def test_a_key_lives_for_whole_days(ada: User, days: str) -> None:
    with pytest.raises(CommandError, match="must be a whole number from 1 to 36500"):
        call_command("create_api_key", "ada", f"--days={days}")
    assert not ApiKey.objects.exists()
