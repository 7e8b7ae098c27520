"""Everybody's own page: their keys, within what the operator allows."""

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from llamero.accounts.models import ApiKey, KeyState, Membership, Team
from llamero.accounts.scopes import DEFAULT_SCOPES
from llamero.accounts.selectors import find_caller, recent_callers
from llamero.accounts.services import issue_api_key
from llamero.audit.models import Change
from llamero.people.own_key_rules import OwnKeyRules
from models_registry.models import Model
from tests.models_registry.factories import make_deployment, make_model, make_version

pytestmark = pytest.mark.django_db
NEW_KEY = {"name": "laptop", "days": "30", "scopes": ["inference", "models"]}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    recent_callers.clear()


@pytest.fixture
def pat() -> User:
    """Somebody who is not of the staff."""
    return User.objects.create_user("pat", password="a good password")


@pytest.fixture
def browser(pat: User) -> Client:
    """Pat's browser."""
    client = Client()
    client.force_login(pat)
    return client


def make(browser: Client, **fields: Any) -> tuple[int, str]:
    """Make a key; give the status and its text."""
    answer = browser.post("/account/keys", NEW_KEY | fields)
    found = re.search(r"llm_\w{8}_\w{40}", answer.content.decode())
    return answer.status_code, found[0] if found else ""


def test_somebody_signs_in_makes_a_key_and_uses_it(pat: User) -> None:
    browser = Client()
    assert browser.get("/account")["Location"] == "/account/sign-in?next=/account"
    sent = {"username": "pat", "password": "a good password", "next": "/account"}
    assert browser.post("/account/sign-in", sent)["Location"] == "/account"

    status, text = make(browser)

    assert status == 200
    caller = find_caller(text)
    assert caller is not None
    assert (caller.user, {*caller.scopes}) == (pat, {"inference", "models"})
    page = browser.get("/account").content.decode()
    assert "laptop" in page
    assert text not in page
    assert text[:12] in page
    change = Change.objects.get(kind="accounts.apikey", action="created")
    assert (change.actor, change.source) == (pat, "page")


def test_a_wrong_password_is_told_and_leads_nowhere_else() -> None:
    answer = Client().post(
        "/account/sign-in?next=https://evil.example", {"username": "pat", "password": "no"}
    )

    assert answer.status_code == 200
    assert "do not fit" in answer.content.decode()


def test_after_signing_in_one_stays_on_this_site(pat: User) -> None:
    sent = {"username": "pat", "password": "a good password", "next": "https://evil.example/"}

    assert Client().post("/account/sign-in", sent)["Location"] == "/account"


def test_keys_are_rotated_disabled_and_revoked(browser: Client, pat: User) -> None:
    _, old = make(browser)
    key = ApiKey.objects.get()

    answer = browser.post(f"/account/keys/{key.pk}/rotate", {"hours": "0"})
    new = re.search(r"llm_\w{8}_\w{40}", answer.content.decode())

    assert "no-store" in answer["Cache-Control"]
    assert new is not None
    assert find_caller(old) is None
    assert find_caller(new[0]) is not None
    browser.post(f"/account/keys/{key.pk}/disable")
    assert ApiKey.objects.get().state == KeyState.DISABLED
    browser.post(f"/account/keys/{key.pk}/revoke")
    assert ApiKey.objects.get().state == KeyState.REVOKED
    assert browser.post(f"/account/keys/{key.pk}/rotate", {"hours": "0"}).status_code == 400


@pytest.mark.parametrize("action", ["rotate", "disable", "revoke"])
def test_nobody_reaches_the_keys_of_others(browser: Client, action: str) -> None:
    other = User.objects.create_user("kim", password="x")
    key = issue_api_key(user=other, name="kims-laptop").key

    assert browser.post(f"/account/keys/{key.pk}/{action}", {"hours": "0"}).status_code == 404

    key.refresh_from_db()
    assert (key.state, key.rotated_at) == (KeyState.ACTIVE, None)
    assert "kims-laptop" not in browser.get("/account").content.decode()


@pytest.mark.parametrize(
    "fields",
    [
        {"scopes": ["upload"]},
        {"scopes": []},
        {"scopes": ["adapters:write", "inference"]},
        {"days": "-1"},
        {"days": "36500"},
        {"days": "x"},
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\0b"},
        {"team": "1"},
    ],
)
def test_more_than_is_allowed_is_refused(browser: Client, fields: dict[str, Any]) -> None:
    Team.objects.create(pk=1, name="Strangers")

    assert make(browser, **fields) == (400, "")

    assert not ApiKey.objects.exists()


def test_the_operator_sets_number_time_scopes_and_models(
    browser: Client, settings: Settings
) -> None:
    models = [Model.objects.create(slug=slug, title=slug, kind="chat") for slug in ("a", "b")]
    settings.OWN_KEYS = OwnKeyRules(1, 30, ("inference",), ("a", "gone"))

    assert make(browser, scopes=["inference", "models"]) == (400, "")
    assert make(browser, days="0", scopes=["inference"]) == (400, "")
    assert make(browser, days="30", scopes=["inference"])[0] == 200
    assert make(browser, days="30", scopes=["inference"]) == (400, "")

    key = ApiKey.objects.get()
    assert (key.scopes, list(key.allowed_models.all())) == (["inference"], models[:1])
    settings.OWN_KEYS = replace(settings.OWN_KEYS, most=9, models=("gone",))
    # A key that lists no models may use all of them.
    assert make(browser, days="30", scopes=["inference"]) == (400, "")
    settings.OWN_KEYS = replace(settings.OWN_KEYS, most=0)
    assert "Make key" not in browser.get("/account").content.decode()


def test_members_make_keys_in_their_teams(browser: Client, pat: User) -> None:
    team = Team.objects.create(name="Herd")
    Membership.objects.create(team=team, user=pat)

    assert make(browser, team=team.pk)[0] == 200

    assert ApiKey.objects.get().team == team


def test_the_page_says_how_a_first_request_is_made(browser: Client, settings: Settings) -> None:
    assert "No model is served that your keys may use" in browser.get("/account").text
    for slug in ("herd-chat", "flock-chat"):
        model = make_model(slug)
        make_version(model, sha256=slug[0] * 64)
        make_deployment(model, state="ready")
    settings.OWN_KEYS = replace(settings.OWN_KEYS, models=("herd-chat",))

    page = browser.get("/account").text

    assert 'value="http://testserver/v1"' in page
    assert "flock-chat" not in page
    for text in re.findall(
        r"<pre class=\"example\"[^>]*><code>(.*?)</code></pre>", page, re.DOTALL
    ):
        assert "herd-chat" in text
        assert "http://testserver/v1" in text
    [source] = re.findall(r"<code>(# pip install openai.*?)</code>", page, re.DOTALL)
    compile(html.unescape(source), "account", "exec")


def test_keys_have_what_is_usual_where_all_is_ticked(browser: Client) -> None:
    page = browser.get("/account").content.decode()

    assert set(re.findall(r'name="scopes" value="([\w:]+)"', page)) == set(DEFAULT_SCOPES)


def test_a_setting_that_means_nothing_stops_the_start() -> None:
    with pytest.raises(ValueError, match="there is no inferrence"):
        OwnKeyRules(1, 0, ("inferrence",), ())


def test_pages_take_no_inline_scripts_and_no_other_method(browser: Client) -> None:
    answer = browser.get("/account")

    assert "unsafe" not in answer["Content-Security-Policy"]
    assert not re.findall(r"<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=", answer.content.decode())
    assert browser.get("/account/keys").status_code == 405
    assert browser.post("/account").status_code == 405
