"""Identity providers in the admin: made, checked, refused where something is wrong."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from llamero.accounts.models import ApiKey, Identity, TokenIssuer
from llamero.accounts.selectors import Caller, find_caller, recent_callers
from llamero.accounts.tokens.refusals import TokenRefused
from tests.llamero.accounts.tokens.signing import AUDIENCE, ISSUER, claims_of, jwks, sign

ADD = "/admin/accounts/tokenissuer/add/"
FORM = {
    "name": "Acme",
    "enabled": "on",
    "issuer": ISSUER,
    "audiences": f"{AUDIENCE}\nother\n\n{AUDIENCE}",
    "algorithms": ["RS256", "EdDSA"],
    "leeway_seconds": "30",
    "required_claims": '{"azp": ["cli"]}',
    "user_policy": "existing",
    "username_claim": "preferred_username",
    "scope_claim": "scope",
    "scope_map": "",
    "models_claim": "",
    "team_claim": "",
}


def find_caller_or_none() -> Caller | None:
    recent_callers.clear()
    try:
        return find_caller(sign(claims_of()))
    except TokenRefused:
        return None


@pytest.fixture
def root(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_an_issuer_is_made_and_its_tokens_count(root: Client, ada: User) -> None:
    assert root.post(ADD, FORM | {"keys": jwks("rsa")}).status_code == 302
    issuer = TokenIssuer.objects.get()
    assert issuer.audiences == [AUDIENCE, "other"]
    assert (issuer.required_claims, issuer.scope_map) == ({"azp": ["cli"]}, {})
    assert find_caller(sign(claims_of(azp="cli"))) is not None
    checked = root.get(
        reverse("admin:accounts_tokenissuer_check_keys", args=[issuer.pk]), follow=True
    )
    assert "1 key: rsa" in checked.content.decode()
    page = root.get(reverse("admin:accounts_tokenissuer_changelist")).content.decode()
    assert "Acme" in page


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"keys": "nonsense"}, "neither a JWKS document nor PEM"),
        ({"keys": jwks("rsa"), "jwks_url": "https://id.example/keys"}, "not both"),
        ({"jwks_url": "http://id.example/keys"}, "Must be https"),
        ({"jwks_url": "https://10.0.0.1/keys"}, "private address"),
        ({"issuer": "http://10.0.0.1"}, "Must be https"),
        ({"issuer": "urn:acme"}, "no https:// URL"),
        ({"keys": jwks("rsa"), "audiences": " "}, "required"),
        ({"keys": jwks("rsa"), "algorithms": ["HS256"]}, "HS256"),
        ({"keys": jwks("rsa"), "algorithms": ["none"]}, "none"),
        ({"keys": jwks("rsa"), "required_claims": "[1]"}, "Must be an object"),
        ({"keys": jwks("rsa"), "required_claims": '{"a": {}}'}, "must be a text"),
        ({"keys": jwks("rsa"), "scope_map": '{"a": ["root"]}'}, "must be a list of some of"),
        ({"keys": jwks("rsa"), "leeway_seconds": "9999"}, "300"),
    ],
)
def test_what_is_wrong_is_said(root: Client, fields: dict[str, Any], why: str) -> None:
    page = root.post(ADD, FORM | fields)
    assert page.status_code == 200
    assert why in page.content.decode()
    assert not TokenIssuer.objects.exists()


def test_keys_that_cannot_be_read_are_said_to_be(root: Client) -> None:
    issuer = TokenIssuer.objects.create(name="A", issuer="https://127.0.0.1", audiences=["x"])
    url = reverse("admin:accounts_tokenissuer_check_keys", args=[issuer.pk])
    assert "private address" in root.get(url, follow=True).content.decode()


def test_a_key_of_an_issuer_has_a_page_but_no_text(root: Client, issuer: TokenIssuer) -> None:
    find_caller(sign(claims_of()))
    key = ApiKey.objects.get()
    change = reverse("admin:accounts_apikey_change", args=[key.pk])
    assert "signed tokens" in root.get(change).content.decode()
    listed = reverse("admin:accounts_apikey_changelist")
    chosen = {"action": "disable", "_selected_action": [key.pk]}
    assert root.post(listed, chosen).status_code == 302
    assert find_caller_or_none() is None
    rotate = reverse("admin:accounts_apikey_rotate", args=[key.pk])
    assert root.get(rotate).status_code == root.post(rotate, {"hours": "0"}).status_code == 404


def test_identities_are_seen_and_forgotten(root: Client, issuer: TokenIssuer) -> None:
    find_caller(sign(claims_of()))
    identity = Identity.objects.get()
    page = reverse("admin:accounts_identity_changelist")
    assert "subject-1" in root.get(page).content.decode()
    change = reverse("admin:accounts_identity_change", args=[identity.pk])
    assert root.post(change, {"subject": "x"}).status_code == 403
    delete = reverse("admin:accounts_identity_delete", args=[identity.pk])
    assert root.post(delete, {"post": "yes"}).status_code == 302
    assert not Identity.objects.exists()


def test_staff_without_permissions_see_no_issuers(client: Client, issuer: TokenIssuer) -> None:
    client.force_login(User.objects.create_user("sam", is_staff=True))
    assert client.get(reverse("admin:accounts_tokenissuer_changelist")).status_code == 403
    assert client.post(ADD, FORM).status_code == 403
