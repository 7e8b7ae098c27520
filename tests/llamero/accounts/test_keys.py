"""Keys in the database: issued, found, ended."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from llamero.accounts.key_text import make_key_text
from llamero.accounts.models import ApiKey, KeyState
from llamero.accounts.selectors import find_caller, recent_callers
from llamero.accounts.services import issue_api_key, revoke_api_keys
from llamero.accounts.uses import uses
from models_registry.models import Model


def test_an_issued_key_finds_its_caller(ada: User, model: Model) -> None:
    issued = issue_api_key(user=ada, name="laptop", allowed_models=[model])
    caller = find_caller(issued.secret_text)
    assert caller is not None
    assert (caller.user, caller.owner) == (ada, f"key:{issued.key.pk}")
    assert caller.may_use(model.pk)
    assert not caller.may_use(model.pk + 1)


def test_a_key_without_a_list_may_use_every_model(ada: User) -> None:
    caller = find_caller(issue_api_key(user=ada, name="laptop").secret_text)
    assert caller is not None
    assert caller.may_use(12345)


def test_the_secret_is_stored_nowhere(ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    secret = issued.secret_text.split("_")[2]
    row = ApiKey.objects.filter(pk=issued.key.pk).values().get()
    assert secret not in str(row)
    assert secret not in repr(issued)
    assert issued.key.prefix in str(issued.key)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"enabled": False}, KeyState.DISABLED),
        ({"expires_at": timezone.now() - timedelta(seconds=1)}, KeyState.EXPIRED),
        ({"revoked_at": timezone.now(), "enabled": False}, KeyState.REVOKED),
    ],
)
def test_an_ended_key_finds_nobody(ada: User, changes: dict[str, object], state: KeyState) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    ApiKey.objects.filter(pk=issued.key.pk).update(**changes)
    assert find_caller(issued.secret_text) is None
    assert ApiKey.objects.get().state == state


def test_a_deactivated_user_is_nobody(ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    User.objects.update(is_active=False)
    assert find_caller(issued.secret_text) is None


def test_a_revoked_key_is_remembered_for_a_second_at_most(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(recent_callers, "_clock", lambda: now)
    issued = issue_api_key(user=ada, name="laptop")
    assert find_caller(issued.secret_text) is not None
    assert revoke_api_keys(keys=[issued.key]) == 1
    assert revoke_api_keys(keys=[issued.key]) == 0
    now = 101.0
    assert find_caller(issued.secret_text) is None


def test_unknown_and_wrong_keys_cost_the_same_queries(ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    counts = []
    for text in (issued.secret_text + "x", make_key_text(), "nonsense", "é"):
        with CaptureQueriesContext(connection) as queries:
            assert find_caller(text) is None
        counts.append(len(queries))
    assert counts == [1, 1, 1, 1]


def test_use_is_noted_once_a_minute(ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    find_caller(issued.secret_text)
    uses.write()
    first = ApiKey.objects.get().last_used_at
    assert first is not None
    recent_callers.clear()
    find_caller(issued.secret_text)
    uses.write()
    assert ApiKey.objects.get().last_used_at == first
    ApiKey.objects.update(last_used_at=first - timedelta(minutes=2))
    recent_callers.clear()
    find_caller(issued.secret_text)
    uses.write()
    noted = ApiKey.objects.get().last_used_at
    assert noted is not None
    assert noted >= first


def test_keys_outlive_a_new_pepper(ada: User, settings: Any) -> None:
    settings.API_KEY_PEPPERS = {1: "one" * 8}
    old = issue_api_key(user=ada, name="old")
    settings.API_KEY_PEPPERS = {1: "one" * 8, 2: "two" * 8}
    new = issue_api_key(user=ada, name="new")
    assert (old.key.pepper, new.key.pepper) == (1, 2)
    assert find_caller(old.secret_text) is not None
    settings.API_KEY_PEPPERS = {2: "two" * 8}
    recent_callers.clear()
    assert find_caller(old.secret_text) is None
    assert find_caller(new.secret_text) is not None
