"""Who a good token is here: a user, in a team or in none, with the rights of a key and no more."""

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from llamero.accounts import notices
from llamero.accounts.callers import read_grant
from llamero.accounts.models import ApiKey, Identity, KeyState, Membership, Team, TokenIssuer
from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import Caller, find_caller, find_key_caller, recent_callers
from llamero.accounts.services import KeyHasNoText, rotate_api_key, switch_api_keys
from llamero.accounts.tokens.refusals import TokenRefused
from llamero.accounts.uses import uses
from models_registry.models import Model
from tests.llamero.accounts.tokens.conftest import make_issuer
from tests.llamero.accounts.tokens.signing import claims_of, sign


def find(**fields: Any) -> Caller:
    caller = find_caller(sign(claims_of(**fields)))
    assert caller is not None
    return caller


def test_a_token_is_a_key_of_its_user(issuer: TokenIssuer, ada: User) -> None:
    caller = find()
    key = ApiKey.objects.get()
    assert (caller.user, caller.team_id) == (ada, None)
    assert (caller.key_id, caller.owner) == (key.pk, f"key:{key.pk}")
    assert caller.ends_at is not None
    assert (key.issuer, key.digest, key.state) == (issuer, None, KeyState.ACTIVE)
    assert str(key) == "ada by Id (signed tokens)"
    assert find(exp=4_000_000_000).key_id == caller.key_id
    assert (ApiKey.objects.count(), Identity.objects.count()) == (1, 1)
    uses.write()
    key.refresh_from_db()
    assert key.last_used_at is not None


def test_it_is_known_by_one_look_from_then_on(issuer: TokenIssuer) -> None:
    token = sign(claims_of())
    find_caller(token)
    recent_callers.clear()
    with CaptureQueriesContext(connection) as queries:
        find_caller(token)
    # The key, and its models.
    assert len(queries) == 2
    with CaptureQueriesContext(connection) as queries:
        find_caller(token)
    assert not queries


def test_without_an_issuer_a_token_is_a_wrong_key(ada: User) -> None:
    assert find_caller(sign(claims_of())) is None
    assert not ApiKey.objects.exists()


def test_a_user_who_is_not_there_is_refused(issuer: TokenIssuer) -> None:
    with pytest.raises(TokenRefused, match="is unknown here"):
        find(preferred_username="bob")
    assert not User.objects.filter(username="bob").exists()


def test_a_user_is_made_where_the_issuer_may(ada: User) -> None:
    make_issuer(user_policy="created")
    bob = find(sub="subject-2", preferred_username="bob").user
    assert isinstance(bob, User)
    assert (bob.username, bob.is_staff, bob.is_superuser) == ("bob", False, False)
    assert not bob.has_usable_password()


@pytest.mark.parametrize("name", ["ada", "root me", "x" * 151, "<b>"])
def test_nobody_is_made_with_a_name_that_is_taken_or_none(ada: User, name: str) -> None:
    make_issuer(user_policy="created")
    with pytest.raises(TokenRefused, match="has a name that"):
        find(preferred_username=name)
    assert User.objects.count() == 1
    assert not Identity.objects.exists()


def test_the_subject_counts_and_not_the_name(issuer: TokenIssuer, ada: User) -> None:
    find()
    User.objects.create_user("bob")
    assert find(preferred_username="bob").user == ada
    with pytest.raises(TokenRefused, match="has a name that is another's here"):
        find(sub="subject-2", preferred_username="ada")


def test_a_token_names_a_team(ada: User, team: Team) -> None:
    make_issuer(team_claim="groups")
    other = Team.objects.create(name="Blue sky")
    assert find(groups="red").team_id == team.pk
    assert find(groups=["staff", "/RED"]).team_id == team.pk
    assert find(groups="Blue sky").team_id == other.pk
    assert find(groups=["Blue sky", "Red"]).team_id == other.pk
    assert not Membership.objects.exists()
    assert ApiKey.objects.count() == 2
    for groups in (None, [], ["green"], 7, "Red Blue sky"):
        with pytest.raises(TokenRefused, match="names no team"):
            find(groups=groups)


def test_models_and_scopes_are_what_key_and_token_both_allow(ada: User, model: Model) -> None:
    make_issuer(models_claim="models")
    other = Model.objects.create(slug="mini", title="Mini")
    assert find(models="*").allowed_models == frozenset()
    caller = find(models=["smol", "nothing"])
    assert caller.may_use(model.pk)
    assert not caller.may_use(other.pk)
    for none in (["nothing"], None):
        nobody = find(models=none)
        assert not nobody.may_use(model.pk)
        assert nobody.allowed_models
    key = ApiKey.objects.get()
    key.allowed_models.set([other])
    key.scopes = [Scope.MODELS, Scope.UPLOAD]
    key.save()
    recent_callers.clear()
    assert not find(models="smol").may_use(model.pk)
    assert find(models="*", scope="upload models inference").scopes == {Scope.MODELS, Scope.UPLOAD}
    assert find(models="*", scope="inference").scopes == frozenset()


def test_what_others_would_notice_a_key_must_list_too(issuer: TokenIssuer) -> None:
    assert find(scope="upload adapters:write models").scopes == {Scope.MODELS}


def test_a_token_may_be_used_where_its_key_may(issuer: TokenIssuer) -> None:
    find()
    ApiKey.objects.update(networks=["192.0.2.0/24"])
    recent_callers.clear()
    assert not find().may_come_from("127.0.0.1")
    assert find().may_come_from("192.0.2.9")


def test_whatever_ends_a_key_ends_its_tokens(issuer: TokenIssuer, ada: User, team: Team) -> None:
    key_id = find().key_id

    def is_good() -> bool:
        recent_callers.clear()
        try:
            return find_caller(sign(claims_of())) is not None
        except TokenRefused:
            assert find_key_caller(key_id or 0) is None
            return False

    key = ApiKey.objects.with_owner().get()
    switch_api_keys(keys=[key], enabled=False)
    assert not is_good()
    switch_api_keys(keys=[key], enabled=True)
    assert is_good()
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not is_good()
    ApiKey.objects.update(expires_at=None)
    User.objects.update(is_active=False)
    assert not is_good()
    User.objects.update(is_active=True)
    assert is_good()


def test_work_that_goes_on_has_the_rights_of_its_token(ada: User, model: Model) -> None:
    make_issuer(models_claim="models")
    caller = find(models="smol", scope="inference batches")
    assert caller.grant is not None
    assert caller.key_id is not None
    kept = json.loads(json.dumps(caller.grant.as_document()))
    find(models="*", scope="inference usage models")
    later = find_key_caller(caller.key_id, read_grant(kept))
    assert later is not None
    assert later.scopes == {Scope.INFERENCE, Scope.BATCHES}
    assert later.allowed_models == {model.pk}
    assert read_grant(None) is None


def test_a_disabled_issuer_ends_its_keys(issuer: TokenIssuer) -> None:
    key_id = find().key_id
    assert key_id is not None
    assert find_key_caller(key_id) is not None
    issuer.enabled = False
    issuer.save()
    assert find_key_caller(key_id) is None
    assert ApiKey.objects.with_owner().get().state == KeyState.OWNERLESS


def test_gateways_are_told_of_an_issuers_end(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    told: list[str] = []
    monkeypatch.setattr(notices, "_announce", told.extend)
    owner = find().owner
    with django_capture_on_commit_callbacks(execute=True):
        issuer.save()
    assert told == [owner]
    told.clear()
    with django_capture_on_commit_callbacks(execute=True):
        issuer.delete()
    assert owner in told


def test_there_is_no_text_to_rotate(issuer: TokenIssuer) -> None:
    find()
    with pytest.raises(KeyHasNoText):
        rotate_api_key(key=ApiKey.objects.get(), grace=timedelta(0))


def test_logs_tell_why_and_never_what(
    issuer: TokenIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    forged, expired = sign(claims_of(), key="other", kid="rsa"), sign(claims_of(exp=1))
    assert find_caller(forged) is None
    with pytest.raises(TokenRefused):
        find_caller(expired)
    assert "not signed with a key of its issuer" in caplog.text
    assert "This token has expired" in caplog.text
    for token in (forged, expired):
        assert not [part for part in token.split(".") if part in caplog.text]
