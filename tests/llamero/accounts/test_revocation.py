"""Whole requests against the database: found, used, ended."""

import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from llamero import dispatch
from llamero.accounts import wrong_keys
from llamero.accounts.models import TokenIssuer
from llamero.accounts.selectors import find_caller, recent_callers
from llamero.accounts.services import issue_api_key, revoke_api_keys
from llamero.accounts.tokens.issuers import recent_issuers
from llamero.audit.models import Change
from models_registry.models import Model
from tests.llamero.accounts.tokens.conftest import make_issuer
from tests.llamero.accounts.tokens.signing import claims_of, sign
from tests.llamero.api.asgi_client import get, post
from tests.llamero.api.fakes import FakeDispatcher
from tests.models_registry.factories import make_model

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> FakeDispatcher:
    fake = FakeDispatcher()
    monkeypatch.setattr(dispatch, "get_dispatcher", lambda: fake)
    return fake


@pytest.fixture
def issuer() -> TokenIssuer:
    recent_issuers.clear()
    User.objects.create(username="ada")
    return make_issuer()


async def test_a_revoked_key_is_401() -> None:
    user = await User.objects.acreate(username="ada")
    issued = await sync_to_async(issue_api_key)(user=user, name="laptop")
    answer = await get("/v1/models", key=issued.secret_text)
    assert (answer.status, answer.json()["data"]) == (200, [])
    await sync_to_async(revoke_api_keys)(keys=[issued.key])
    recent_callers.clear()
    answer = await get("/v1/models", key=issued.secret_text)
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")


@pytest.mark.parametrize("together", [True, False])
def test_a_key_for_models_that_are_deleted_is_not_for_all_others(together: bool) -> None:
    models = [make_model(slug=slug) for slug in ("one", "two")]
    user = User.objects.create(username="ada")
    issued = issue_api_key(user=user, name="limited", allowed_models=models)
    other = issue_api_key(user=user, name="unlimited")
    if together:
        Model.objects.all().delete()
    else:
        models[0].delete()
        caller = find_caller(issued.secret_text)
        assert caller is not None
        assert caller.allowed_models == {models[1].pk}
        models[1].delete()
    recent_callers.clear()
    assert find_caller(issued.secret_text) is None
    assert find_caller(other.secret_text) is not None
    assert Change.objects.filter(kind="accounts.apikey", after__enabled=False).exists()


@pytest.mark.parametrize("header", ["authorization", "x-api-key", "api-key"])
async def test_a_token_opens_what_a_key_does(issuer: TokenIssuer, header: str) -> None:
    shown = f"Bearer {sign(claims_of())}" if header == "authorization" else sign(claims_of())
    answer = await get("/v1/models", key=None, headers={header: shown})
    assert (answer.status, answer.json()["data"]) == (200, [])


async def test_a_scope_that_the_token_lacks_is_named(issuer: TokenIssuer) -> None:
    answer = await get("/v1/models", key=sign(claims_of(scope="inference")))
    assert (answer.status, answer.error["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize("url", ["/v1/chat/completions", "/v1/messages", "/completion"])
async def test_a_token_that_does_not_count_is_told_why(issuer: TokenIssuer, url: str) -> None:
    answer = await post(url, b"{", key=sign(claims_of(exp=int(time.time()) - 60)))
    assert answer.status == 401
    assert answer.json()["error"]["message"] == "This token has expired."
    challenge = 'Bearer error="invalid_token", error_description="This token has expired."'
    assert answer.headers["www-authenticate"] == challenge


async def test_a_token_nobody_has_signed_is_a_wrong_key(
    issuer: TokenIssuer, dispatcher: FakeDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrong_keys, "HOLD_SECONDS", 0.0)
    unknown = await get("/v1/models", key="llm_abcdefgh_" + "x" * 40)
    forged = await get("/v1/models", key=sign(claims_of(), key="other", kid="rsa"))
    assert (forged.status, forged.body) == (unknown.status, unknown.body)
    assert forged.headers["www-authenticate"] == "Bearer"
    dispatcher.wrong_keys.number = 1000
    for token in (sign(claims_of(), key="other"), sign(claims_of(exp=1)), "eyJ.eyJ.x"):
        assert (await get("/v1/models", key=token)).status == 429


@pytest.mark.parametrize("length", [8_000, 100_000])
async def test_a_huge_token_is_401(issuer: TokenIssuer, length: int) -> None:
    token = sign(claims_of(pad="x" * length))
    assert (await get("/v1/models", key=token)).status == 401


async def test_a_token_whose_issuer_is_away_is_503(issuer: TokenIssuer) -> None:
    issuer.keys, issuer.jwks_url = "", "https://127.0.0.1/keys"
    await issuer.asave()
    recent_issuers.clear()
    answer = await get("/v1/models", key=sign(claims_of()))
    assert (answer.status, answer.error["code"]) == (503, "issuer_unavailable")
    assert answer.headers["retry-after"] == "5"


async def test_a_token_in_the_address_counts_for_nothing(issuer: TokenIssuer) -> None:
    answer: Any = await get(f"/v1/models?access_token={sign(claims_of())}", key=None)
    assert answer.status == 401
