"""Rotation, teams and lists of keys in the admin."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from llamero.accounts.models import ApiKey, Membership, Priority, Team, TeamRole
from llamero.accounts.scopes import Scope
from llamero.accounts.selectors import find_caller, recent_callers
from llamero.accounts.services import issue_api_key, revoke_api_keys
from tests.llamero.accounts.key_forms import EMPTY

ADD = "admin:accounts_apikey_add"
LIST = "admin:accounts_apikey_changelist"
KEY_TEXT = re.compile(r"llm_[0-9A-Za-z]{8}_[0-9A-Za-z]{40}")


@pytest.fixture
def browser(db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="toor"))
    return client


def rotate_url(key: ApiKey) -> str:
    return reverse("admin:accounts_apikey_rotate", args=[key.pk])


def test_a_key_is_rotated_on_a_page_that_shows_the_new_one_once(browser: Client, ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    assert (
        rotate_url(issued.key)
        in browser.get(
            reverse("admin:accounts_apikey_change", args=[issued.key.pk])
        ).content.decode()
    )
    asked = browser.get(rotate_url(issued.key))
    assert asked.status_code == 200
    assert KEY_TEXT.search(asked.content.decode()) is None
    answer = browser.post(rotate_url(issued.key), {"hours": "24"})
    assert "no-store" in answer["Cache-Control"]
    text = KEY_TEXT.search(answer.content.decode())
    assert text is not None
    assert find_caller(text[0]) == find_caller(issued.secret_text) is not None
    page = browser.get(reverse("admin:accounts_apikey_change", args=[issued.key.pk]))
    assert text[0] not in page.content.decode()
    assert f"llm_{issued.key.prefix}_… until" in page.content.decode()


@pytest.mark.parametrize("hours", ["", "5", "x", "-1"])
def test_a_rotation_needs_one_of_its_graces(browser: Client, ada: User, hours: str) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    answer = browser.post(rotate_url(issued.key), {"hours": hours})
    assert answer.status_code == 200
    assert KEY_TEXT.search(answer.content.decode()) is None
    assert ApiKey.objects.get().digest == issued.key.digest


def test_a_revoked_key_cannot_be_rotated(browser: Client, ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    revoke_api_keys(keys=[issued.key])
    answer = browser.post(rotate_url(issued.key), {"hours": "24"}, follow=True)
    assert "was revoked, and stays so" in answer.content.decode()


def test_restrictions_are_set_and_changed_by_forms(browser: Client, ada: User) -> None:
    data = {"name": "ci", "user": ada.pk, "scopes": ["inference", "models"]}
    data |= {"networks": "10.0.0.0/8\n 2001:db8::/32, 192.0.2.7"}
    assert browser.post(reverse(ADD), data | EMPTY).status_code == 200
    key = ApiKey.objects.get()
    assert key.scopes == ["inference", "models"]
    assert key.networks == ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7/32"]
    assert key.priority == Priority.NORMAL
    change = reverse("admin:accounts_apikey_change", args=[key.pk])
    assert "10.0.0.0/8\n2001:db8::/32" in browser.get(change).content.decode()
    bad = browser.post(change, data | EMPTY | {"networks": "10.0.0.1/8", "enabled": "on"})
    assert "10.0.0.0/8 may be meant" in bad.content.decode()
    browser.post(change, data | EMPTY | {"networks": "", "scopes": [], "enabled": "on"})
    key.refresh_from_db()
    assert (key.scopes, key.networks) == ([], [])
    answer = browser.post(change, data | EMPTY | {"priority": "7", "enabled": "on"})
    assert "7 is not one of the available choices" in answer.content.decode()
    browser.post(change, data | EMPTY | {"priority": str(Priority.HIGH), "enabled": "on"})
    key.refresh_from_db()
    assert key.priority == Priority.HIGH


def test_keys_are_disabled_and_enabled_from_the_list(browser: Client, ada: User) -> None:
    issued = issue_api_key(user=ada, name="laptop")
    for action, is_good in (("disable", False), ("enable", True)):
        browser.post(reverse(LIST), {"action": action, "_selected_action": [issued.key.pk]})
        recent_callers.clear()
        assert (find_caller(issued.secret_text) is not None) is is_good


def test_a_key_without_an_owner_is_a_form_error(browser: Client) -> None:
    answer = browser.post(reverse(ADD), {"name": "x"} | EMPTY)
    assert answer.status_code == 200
    assert "A key needs a user or a team" in answer.content.decode()


def count_queries(browser: Client, url: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert browser.get(url).status_code == 200
    return len(queries)


def test_lists_take_as_many_queries_for_many_as_for_few(browser: Client, team: Team) -> None:
    lists = (reverse(LIST), reverse("admin:accounts_team_changelist"))
    counts: list[list[int]] = []
    for round_number in range(3):
        for number in range(1 + 4 * round_number):
            name = f"{round_number}-{number}"
            user = User.objects.create_user(name)
            Membership.objects.create(team=team, user=user)
            other = Team.objects.create(name=f"team {name}")
            issue_api_key(user=user, team=team, name=name, scopes=[Scope.MODELS])
            issue_api_key(team=other, name=name)
        counts.append([count_queries(browser, url) for url in lists])
    # The first look also warms what is read once.
    assert counts[1] == counts[2]


@pytest.mark.parametrize("state", ["active", "disabled", "expired", "ownerless", "revoked", "x"])
def test_lists_are_filtered_by_state(browser: Client, ada: User, state: str) -> None:
    issue_api_key(user=ada, name="laptop")
    answer = browser.get(reverse(LIST), {"state": state})
    assert answer.status_code in (200, 302)
    if answer.status_code == 200 and state != "x":
        assert (b"laptop" in answer.content) is (state == "active")


@pytest.fixture
def team_admin(team: Team, client: Client) -> Client:
    user = User.objects.create_user("tess", is_staff=True)
    Membership.objects.create(team=team, user=user, role=TeamRole.ADMIN)
    client.force_login(user)
    return client


def test_a_teams_admin_looks_after_the_teams_keys_alone(
    team_admin: Client, team: Team, ada: User
) -> None:
    blue = Team.objects.create(name="Blue")
    own = issue_api_key(team=team, name="own-robot")
    others = [
        issue_api_key(team=blue, name="blue-robot"),
        issue_api_key(user=ada, name="adas-laptop"),
    ]
    page = team_admin.get(reverse(LIST)).content.decode()
    assert "own-robot" in page
    assert "adas-laptop" not in page
    assert "blue-robot" not in page
    for other in others:
        change = reverse("admin:accounts_apikey_change", args=[other.key.pk])
        assert team_admin.get(change).status_code in (302, 403)
        assert team_admin.get(rotate_url(other.key)).status_code in (403, 404)
        chosen: dict[str, Any] = {"action": "revoke", "_selected_action": [other.key.pk]}
        team_admin.post(reverse(LIST), chosen)
        assert find_caller(other.secret_text) is not None
    team_admin.post(reverse(LIST), {"action": "revoke", "_selected_action": [own.key.pk]})
    assert find_caller(own.secret_text) is None
    empty = {"name": "new"} | EMPTY
    for data in ({"team": blue.pk}, {"user": ada.pk}, {"team": team.pk, "scopes": ["upload"]}):
        team_admin.post(reverse(ADD), empty | data)
    assert not ApiKey.objects.filter(name="new").exists()
    first = {"priority": str(Priority.HIGH)}
    shown = team_admin.post(reverse(ADD), empty | first | {"team": team.pk, "user": ada.pk})
    assert KEY_TEXT.search(shown.content.decode())
    made = ApiKey.objects.get(name="new")
    assert (made.team, made.user, made.priority) == (team, None, Priority.NORMAL)
    change = reverse("admin:accounts_apikey_change", args=[made.pk])
    team_admin.post(change, EMPTY | first | {"name": "renamed", "enabled": "on"})
    made.refresh_from_db()
    assert (made.name, made.priority) == ("renamed", Priority.NORMAL)


def test_members_and_staff_who_may_only_look_change_nothing(
    team_admin: Client, team: Team, ada: User
) -> None:
    issued = issue_api_key(team=team, name="own")
    Membership.objects.update(role=TeamRole.MEMBER)
    assert team_admin.get(reverse(LIST)).status_code == 403
    tess = User.objects.get(username="tess")
    tess.user_permissions.add(Permission.objects.get(codename="view_apikey"))
    Membership.objects.update(role=TeamRole.ADMIN)
    assert team_admin.get(reverse(LIST)).status_code == 200
    assert team_admin.post(rotate_url(issued.key), {"hours": "0"}).status_code == 403
    team_admin.post(reverse(LIST), {"action": "revoke", "_selected_action": [issued.key.pk]})
    assert find_caller(issued.secret_text) is not None


def test_who_is_not_signed_in_sees_the_form_to_do_so(client: Client, db: None) -> None:
    assert client.get(reverse("admin:login")).status_code == 200
