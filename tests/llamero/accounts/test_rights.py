"""Teams, scopes and networks; rotation, and old peppers; who may call no more."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inference.protocol.jobs import IDLE_PRIORITY
from inference.relay.gateway import MAX_PRIORITY
from llamero.accounts import notices
from llamero.accounts.models import ApiKey, KeyState, Membership, Priority, Team
from llamero.accounts.scopes import DEFAULT_SCOPES, Scope
from llamero.accounts.selectors import _find_lost, find_caller, find_key_caller, recent_callers
from llamero.accounts.services import (
    KeyHasEnded,
    issue_api_key,
    revoke_api_keys,
    rotate_api_key,
    switch_api_keys,
)
from llamero.accounts.uses import uses

DAY = timedelta(days=1)


def is_good(text: str) -> bool:
    recent_callers.clear()
    return find_caller(text) is not None


def test_a_teams_key_needs_no_user(team: Team) -> None:
    issued = issue_api_key(team=team, name="ci")
    caller = find_caller(issued.secret_text)
    assert caller is not None
    assert (caller.user, caller.team_id) == (None, team.pk)
    assert caller.owner == f"key:{issued.key.pk}"
    team.is_active = False
    team.save()
    assert not is_good(issued.secret_text)


def test_a_members_key_lives_as_long_as_the_membership(ada: User, team: Team) -> None:
    with pytest.raises(ValidationError, match="ada is no member of Red"):
        issue_api_key(user=ada, team=team, name="ci")
    membership = Membership.objects.create(team=team, user=ada)
    issued = issue_api_key(user=ada, team=team, name="ci")
    assert is_good(issued.secret_text)
    membership.delete()
    assert not is_good(issued.secret_text)
    assert find_key_caller(issued.key.pk) is None
    assert ApiKey.objects.with_owner().get().state == KeyState.OWNERLESS
    Membership.objects.create(team=team, user=ada)
    assert is_good(issued.secret_text)


def test_a_key_has_an_owner(db: None) -> None:
    with pytest.raises(ValidationError, match="A key needs a user or a team"):
        issue_api_key(name="nobody's")


def test_names_of_teams_differ(team: Team) -> None:
    with pytest.raises(ValidationError, match="There is a team of this name"):
        Team(name="RED").full_clean()
    with pytest.raises(IntegrityError), transaction.atomic():
        Team.objects.create(name="rED")


def test_scopes_are_what_the_key_lists_or_the_harmless_ones(ada: User) -> None:
    plain = find_caller(issue_api_key(user=ada, name="plain").secret_text)
    narrow = issue_api_key(user=ada, name="narrow", scopes=[Scope.UPLOAD, Scope.MODELS])
    limited = find_caller(narrow.secret_text)
    assert plain is not None
    assert limited is not None
    assert plain.scopes == DEFAULT_SCOPES
    assert not {Scope.UPLOAD, Scope.ADAPTERS_WRITE} & DEFAULT_SCOPES
    assert limited.scopes == {Scope.UPLOAD, Scope.MODELS}


def test_jobs_wait_in_the_class_that_their_key_has(ada: User) -> None:
    issued = issue_api_key(user=ada, name="first", priority=Priority.HIGH)
    caller = find_caller(issued.secret_text)
    assert caller is not None
    assert IDLE_PRIORITY < Priority.LOW < 0 < caller.priority <= MAX_PRIORITY
    ApiKey.objects.update(priority=Priority.LOW)
    recent_callers.clear()
    again = find_caller(issued.secret_text)
    assert again is not None
    assert again.priority == Priority.LOW


@pytest.mark.parametrize(
    "fields",
    [
        {"scopes": ["chat"]},
        {"scopes": ["models", "models"]},
        {"networks": ["10.0.0.1/8"]},
        {"networks": ["nowhere"]},
        {"networks": ["10.0.0.1"] * 65},
    ],
)
def test_bad_restrictions_are_refused(ada: User, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        issue_api_key(user=ada, name="laptop", **fields)
    assert not ApiKey.objects.exists()


def test_a_rotated_key_is_the_same_key_with_two_texts_for_a_while(ada: User) -> None:
    first = issue_api_key(user=ada, name="laptop")
    second = rotate_api_key(key=first.key, grace=DAY)
    assert second.key.pk == first.key.pk
    assert second.secret_text != first.secret_text
    callers = [find_caller(text) for text in (first.secret_text, second.secret_text)]
    assert callers[0] == callers[1] is not None
    ApiKey.objects.update(old_expires_at=timezone.now())
    assert [is_good(one.secret_text) for one in (first, second)] == [False, True]


def test_a_second_rotation_ends_the_first_text(ada: User) -> None:
    texts = [(issued := issue_api_key(user=ada, name="laptop")).secret_text]
    texts += [rotate_api_key(key=issued.key, grace=DAY).secret_text for _ in range(2)]
    assert [is_good(text) for text in texts] == [False, True, True]
    texts.append(rotate_api_key(key=issued.key, grace=timedelta(0)).secret_text)
    assert [is_good(text) for text in texts] == [False, False, False, True]


def test_revoking_ends_both_texts_and_nothing_brings_them_back(ada: User) -> None:
    first = issue_api_key(user=ada, name="laptop")
    second = rotate_api_key(key=first.key, grace=DAY)
    revoke_api_keys(keys=[first.key])
    assert [is_good(one.secret_text) for one in (first, second)] == [False, False]
    with pytest.raises(KeyHasEnded):
        rotate_api_key(key=first.key, grace=DAY)
    assert switch_api_keys(keys=[first.key], enabled=True) == 0
    assert not is_good(second.secret_text)


def test_keys_are_switched_off_and_on(ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    assert switch_api_keys(keys=[issued.key], enabled=False) == 1
    assert not is_good(issued.secret_text)
    assert switch_api_keys(keys=[issued.key], enabled=True) == 1
    assert is_good(issued.secret_text)


def test_wrong_ended_and_unknown_keys_are_asked_for_alike(ada: User) -> None:
    keys = [issue_api_key(user=ada, name=name) for name in ("wrong", "revoked", "expired")]
    revoke_api_keys(keys=[keys[1].key])
    ApiKey.objects.filter(name="expired").update(expires_at=timezone.now())
    wrong = keys[0].secret_text[:-1] + "_"
    asked = set()
    for text in (wrong, keys[1].secret_text, keys[2].secret_text, "nonsense"):
        with CaptureQueriesContext(connection) as queries:
            assert find_caller(text) is None
        (query,) = queries
        # Digests and times are all that differs.
        asked.add("".join(letter for letter in query["sql"] if not letter.isalnum()))
        assert text not in query["sql"]
    assert len(asked) == 1


def test_a_key_is_sealed_anew_when_it_is_used(ada: User, settings: Any) -> None:
    settings.API_KEY_PEPPERS = {1: "one" * 8}
    issued = issue_api_key(user=ada, name="old")
    settings.API_KEY_PEPPERS = {1: "one" * 8, 2: "two" * 8}
    assert is_good(issued.secret_text)
    uses.write()
    assert ApiKey.objects.get().pepper == 2
    settings.API_KEY_PEPPERS = {2: "two" * 8}
    assert is_good(issued.secret_text)


def test_uses_wait_for_a_database_that_is_away(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    find_caller(issued.secret_text)
    with monkeypatch.context() as patch:
        patch.setattr(ApiKey.objects, "filter", _fail)
        uses.write()
    uses.write()
    assert ApiKey.objects.get().last_used_at is not None


def _fail(*_: Any, **__: Any) -> None:
    raise IntegrityError("away")


def test_owners_are_reviewed_at_once(ada: User) -> None:
    good, bad = (issue_api_key(user=ada, name=name).key for name in ("good", "bad"))
    revoke_api_keys(keys=[bad])
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    owners = {f"key:{good.pk}", f"key:{bad.pk}", "key:999999", f"user:{ada.pk}", "user:999999"}
    with CaptureQueriesContext(connection) as queries:
        lost = _find_lost(frozenset(owners | {"metrics", "key:x"}))
    assert lost == {f"key:{bad.pk}", "key:999999", "user:999999"}
    assert len(queries) == 2


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    told: list[str] = []
    monkeypatch.setattr(notices, "_announce", told.extend)
    return told


def test_gateways_are_told_of_whatever_ends_a_key(
    ada: User, team: Team, announced: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    membership = Membership.objects.create(team=team, user=ada)
    key = issue_api_key(user=ada, team=team, name="ci").key
    owner = f"key:{key.pk}"

    def told_by(change: Any) -> set[str]:
        announced.clear()
        with django_capture_on_commit_callbacks(execute=True):
            change()
        return set(announced)

    assert told_by(lambda: revoke_api_keys(keys=[key])) == {owner}
    assert told_by(key.save) == {owner}
    assert told_by(lambda: key.allowed_models.clear()) == {owner}
    assert told_by(ada.save) == {owner, f"user:{ada.pk}"}
    assert told_by(lambda: ada.save(update_fields=["last_login"])) == set()
    assert told_by(team.save) == {owner}
    assert told_by(membership.delete) == {owner}
    assert told_by(team.delete) == {owner}
