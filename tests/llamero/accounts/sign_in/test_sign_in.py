"""Through an identity provider into the admin, and out again; strangers stay outside."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from llamero.accounts.models import Identity
from llamero.accounts.sign_in import views
from llamero.accounts.sign_in.config import SignInSettings, read_group_map
from tests.llamero.accounts.sign_in.provider import CLIENT, SECRET, FakeProvider

pytestmark = pytest.mark.django_db
BEGIN, CALLBACK = "/sign-in/", "/sign-in/callback"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    fake = FakeProvider()
    yield fake
    fake.close()


@pytest.fixture(autouse=True)
def config(provider: FakeProvider, settings: Any) -> SignInSettings:
    settings.INTERNAL_HOSTS = [provider.host]
    settings.SIGN_IN = SignInSettings(
        issuer=provider.issuer,
        client_id=CLIENT,
        client_secret=SECRET,
        name="Acme",
        staff_groups=frozenset({"llm-staff"}),
        superuser_groups=frozenset({"llm-root"}),
        group_map=(("llm-staff", "Crew"), ("https://acme/x", "Readers")),
    )
    return settings.SIGN_IN


def sign_in(provider: FakeProvider, client: Client, target: str = "") -> Any:
    """Go to the provider and come back."""
    away = client.get(BEGIN, {"next": target} if target else {})
    assert away.status_code == 302
    back = urlsplit(provider.authorize(away["Location"]))
    assert (back.netloc, back.path) == ("testserver", CALLBACK)
    return client.get(f"{back.path}?{back.query}")


def is_inside(client: Client) -> bool:
    return client.get(reverse("admin:index")).status_code == 200


def assert_refused(answer: HttpResponse, client: Client, why: str) -> None:
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("admin:login"))
    assert why in client.get(answer["Location"]).content.decode()
    assert not is_inside(client)


def test_who_is_in_a_group_that_may_enter_is_made_a_user_and_signed_in(
    provider: FakeProvider, client: Client
) -> None:
    Group.objects.create(name="Crew")
    Group.objects.create(name="Readers")
    answer = sign_in(provider, client, "/admin/accounts/apikey/")
    assert (answer.status_code, answer["Location"]) == (302, "/admin/accounts/apikey/")
    user = User.objects.get()
    assert (user.username, user.is_staff, user.is_superuser) == ("ada", True, False)
    assert not user.has_usable_password()
    assert [group.name for group in user.groups.all()] == ["Crew"]
    assert is_inside(client)
    assert client.session.get_expiry_age() <= 12 * 3600
    assert client.cookies[views.COOKIE].value == ""
    # The ID token said it all.
    assert "/userinfo" not in provider.asked


@pytest.mark.parametrize(
    ("key", "algorithm"), [("p256", "ES256"), ("ed25519", "EdDSA"), ("rsa", "PS256")]
)
def test_any_algorithm_with_a_public_key_will_do(
    provider: FakeProvider, client: Client, key: str, algorithm: str
) -> None:
    provider.key, provider.algorithm = key, algorithm
    sign_in(provider, client)
    assert is_inside(client)


def test_what_the_id_token_lacks_userinfo_tells(provider: FakeProvider, client: Client) -> None:
    provider.is_sparse = True
    sign_in(provider, client)
    assert is_inside(client)
    assert "/userinfo" in provider.asked


def test_rights_follow_groups_at_each_sign_in(provider: FakeProvider, client: Client) -> None:
    own = Group.objects.create(name="Chosen here")
    Group.objects.create(name="Crew")
    sign_in(provider, client)
    user = User.objects.get()
    user.groups.add(own)
    provider.person["groups"] = ["llm-root", "others"]
    sign_in(provider, Client())
    user.refresh_from_db()
    assert (user.is_staff, user.is_superuser) == (True, True)
    assert [group.name for group in user.groups.all()] == ["Chosen here"]
    provider.person["groups"] = ["others"]
    assert_refused(sign_in(provider, client), client, "None of your groups at Acme may enter")
    user.refresh_from_db()
    assert (user.is_staff, user.is_superuser) == (False, False)


@pytest.mark.parametrize(
    "groups", [None, [], "llm", "not llm-staff", ["LLM-STAFF"], {"llm-staff": True}, [7]]
)
def test_strangers_stay_outside_and_are_made_nobody(
    provider: FakeProvider, client: Client, groups: Any
) -> None:
    provider.person["groups"] = groups
    assert_refused(sign_in(provider, client), client, "None of your groups")
    assert not User.objects.exists()


def test_nobody_becomes_a_user_who_is_there_already(provider: FakeProvider, client: Client) -> None:
    User.objects.create_superuser("ada", password="x")
    assert_refused(sign_in(provider, client), client, "has a name that is taken here")
    assert not Identity.objects.exists()


def test_users_who_were_made_beforehand_are_found_by_name_and_then_by_subject(
    provider: FakeProvider, client: Client, settings: Any
) -> None:
    settings.SIGN_IN = replace(settings.SIGN_IN, creates_users=False)
    assert_refused(sign_in(provider, client), client, "is unknown here")
    ada = User.objects.create_user("ada")
    sign_in(provider, client)
    assert is_inside(client)
    provider.person["preferred_username"] = "lovelace"
    other = Client()
    sign_in(provider, other)
    assert other.session["_auth_user_id"] == str(ada.pk)


def test_a_disabled_user_stays_outside(provider: FakeProvider, client: Client) -> None:
    sign_in(provider, client)
    User.objects.update(is_active=False)
    again = Client()
    assert_refused(sign_in(provider, again), again, "disabled here")


NOW = int(time.time())


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"aud": "another client"},
        {"aud": [CLIENT, "other"], "azp": "other"},
        {"iss": "https://evil.example"},
        {"exp": NOW - 120},
        {"exp": None},
        {"iat": NOW + 86_400},
        {"sub": None},
        {"sub": ""},
    ],
)
def test_an_id_token_that_is_no_good_opens_nothing(
    provider: FakeProvider, client: Client, claims: dict[str, Any]
) -> None:
    provider.id_claims = claims
    assert_refused(sign_in(provider, client), client, "did not vouch for you")
    assert not User.objects.exists()


def test_an_id_token_of_an_unknown_key_opens_nothing(
    provider: FakeProvider, client: Client
) -> None:
    provider.key = "other"
    assert_refused(sign_in(provider, client), client, "did not vouch for you")


def test_userinfo_of_somebody_else_opens_nothing(provider: FakeProvider, client: Client) -> None:
    provider.is_sparse, provider.id_claims = True, {"sub": "somebody else"}
    assert_refused(sign_in(provider, client), client, "did not vouch for you")


def test_a_provider_that_refuses_the_code_opens_nothing(
    provider: FakeProvider, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    provider.is_broken = True
    assert_refused(sign_in(provider, client), client, "did not vouch for you")
    assert SECRET not in caplog.text


def test_only_the_browser_that_began_can_finish_and_once(
    provider: FakeProvider, client: Client
) -> None:
    back = urlsplit(provider.authorize(client.get(BEGIN)["Location"]))
    other = Client()
    other.get(BEGIN)
    for stranger in (Client(), other):
        refused = stranger.get(f"{CALLBACK}?{back.query}")
        assert_refused(refused, stranger, "not begun here")
    assert client.get(f"{CALLBACK}?{back.query}")["Location"] == "/admin/"
    client.logout()
    assert_refused(client.get(f"{CALLBACK}?{back.query}"), client, "not begun here")


@pytest.mark.parametrize(
    "query", ["", "code=x", "state=x&code=x", "state=%00", "state=%FF&code=x", "error=oops"]
)
def test_an_answer_that_is_none_opens_nothing(client: Client, query: str) -> None:
    client.get(BEGIN)
    assert_refused(client.get(f"{CALLBACK}?{query}"), client, "not begun here")


def test_an_answer_of_another_provider_opens_nothing(
    provider: FakeProvider, client: Client
) -> None:
    back = provider.authorize(client.get(BEGIN)["Location"])
    query = urlsplit(back).query.replace("iss=http", "iss=https")
    assert_refused(client.get(f"{CALLBACK}?{query}"), client, "not begun here")


def test_who_says_no_at_the_provider_is_told_so(provider: FakeProvider, client: Client) -> None:
    url = client.get(BEGIN)["Location"]
    state = parse_qs(urlsplit(url).query)["state"][0]
    answer = client.get(CALLBACK, {"error": "access_denied", "state": state})
    assert_refused(answer, client, "You cancelled at Acme, or it refused")


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "\\\\evil"]
)
def test_nobody_is_led_elsewhere(provider: FakeProvider, client: Client, target: str) -> None:
    assert sign_in(provider, client, target)["Location"] == "/admin/"


def test_a_provider_that_is_away_is_said_to_be(
    provider: FakeProvider, client: Client, settings: Any
) -> None:
    settings.SIGN_IN = replace(settings.SIGN_IN, issuer="http://127.0.0.1:1")
    assert_refused(client.get(BEGIN), client, "Acme cannot be reached")


def test_nobody_is_to_blame_for_a_provider_that_is_away(
    provider: FakeProvider, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    monkeypatch.setattr(views, "slow_down", lambda _: counted.append("tried"))
    monkeypatch.setattr(views, "note_signed_in", lambda _: counted.remove("tried"))
    back = urlsplit(provider.authorize(client.get(BEGIN)["Location"]))
    provider.is_away = True
    assert_refused(client.get(f"{CALLBACK}?{back.query}"), client, "Acme cannot be reached")
    assert counted == []
    provider.is_away, provider.is_broken = False, True
    assert_refused(sign_in(provider, client), client, "did not vouch for you")
    assert counted == ["tried"]


def test_a_provider_that_is_away_is_not_asked_by_everybody(
    provider: FakeProvider, client: Client
) -> None:
    provider.is_away = True
    for _ in range(5):
        assert_refused(client.get(BEGIN), client, "Acme cannot be reached")
    assert len(provider.asked) == 1


def test_an_address_that_is_not_verified_is_nobodys(
    provider: FakeProvider, client: Client, settings: Any
) -> None:
    settings.SIGN_IN = replace(settings.SIGN_IN, username_claim="email", creates_users=False)
    User.objects.create_user("ada@x.org")
    provider.person |= {"email": "ada@x.org", "email_verified": False}
    assert_refused(sign_in(provider, client), client, "did not say who you are")
    provider.person["email_verified"] = True
    sign_in(provider, client)
    assert is_inside(client)


@pytest.mark.parametrize(
    "tells", [{"issuer": "https://evil.example"}, {"token_endpoint": "http://169.254.169.254/"}]
)
def test_a_provider_that_names_what_must_not_be_asked_is_none(
    provider: FakeProvider, client: Client, tells: dict[str, Any]
) -> None:
    provider.tells = tells
    assert_refused(client.get(BEGIN), client, "Acme cannot be reached")


def test_signing_out_ends_the_session_and_leads_to_the_provider(
    provider: FakeProvider, client: Client
) -> None:
    sign_in(provider, client)
    page = client.post("/admin/logout/")
    assert page.status_code == 200
    assert f"{provider.issuer}/bye?client_id={CLIENT}&amp;post_logout" in page.content.decode()
    assert not is_inside(client)
    assert client.get("/admin/logout/").status_code in (302, 405)


def test_everybodys_own_page_leads_to_the_provider_and_back_and_out(
    provider: FakeProvider, client: Client
) -> None:
    door = reverse("people:sign-in")
    page = client.get(door).content.decode()
    assert 'href="/sign-in/?next=%2Faccount"' in page
    away = client.get(BEGIN, {"next": "/account"})
    refused = client.get(CALLBACK, {"error": "access_denied"})
    assert refused["Location"].startswith(door)
    assert "not begun here" in client.get(refused["Location"]).content.decode()
    assert away.status_code == 302
    assert sign_in(provider, client, "/account")["Location"] == "/account"
    page = client.post(reverse("people:sign-out"))
    assert f"{provider.issuer}/bye?client_id={CLIENT}" in page.content.decode()
    assert client.get("/account")["Location"].startswith(door)


def test_the_code_is_not_sent_where_the_provider_was_looked_up_but_no_longer_is(
    provider: FakeProvider, client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    back = urlsplit(provider.authorize(client.get(BEGIN)["Location"]))
    settings.INTERNAL_HOSTS = []
    assert_refused(client.get(f"{back.path}?{back.query}"), client, "did not vouch for you")
    assert "/token" not in provider.asked


def test_the_form_for_passwords_stays(client: Client) -> None:
    User.objects.create_superuser("root", password="toor")
    page = client.get(reverse("admin:login"), {"next": "/playground"}).content.decode()
    assert 'href="/sign-in/?next=%2Fplayground"' in page
    assert "Sign in with Acme" in page
    answer = client.post(reverse("admin:login"), {"username": "root", "password": "toor"})
    assert answer.status_code == 302
    assert is_inside(client)
    assert b"/bye" not in client.post("/admin/logout/").content
    assert not is_inside(client)


def test_without_a_provider_there_is_no_way_and_no_button(client: Client, settings: Any) -> None:
    settings.SIGN_IN = SignInSettings(issuer="", client_id="")
    assert client.get(BEGIN).status_code == 404
    assert client.get(CALLBACK).status_code == 404
    assert "Sign in with" not in client.get(reverse("admin:login")).content.decode()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"client_id": ""}, "CLIENT_ID"),
        ({"staff_groups": frozenset()}, "STAFF_GROUPS"),
        ({"scopes": ("profile",)}, "openid"),
        ({"session_hours": 0}, "SESSION_HOURS"),
    ],
)
def test_bad_settings_stop_the_start(fields: dict[str, Any], why: str) -> None:
    good = {"issuer": "https://x", "client_id": "y", "staff_groups": frozenset({"z"})}
    with pytest.raises(ImproperlyConfigured, match=why):
        SignInSettings(**good | fields)


def test_groups_are_mapped_by_their_last_colon() -> None:
    assert read_group_map(["a:b", "https://x/y:z"]) == (("a", "b"), ("https://x/y", "z"))
    with pytest.raises(ImproperlyConfigured):
        read_group_map(["ab"])
