"""Lists of the admin: named by what is in them, and of use where nothing is."""

import html
import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from llamero.accounts.models import Team
from llamero.audit.names import name_thing
from llamero.console.sidebar import ICONS
from llamero.console.templatetags.lists import WHEN_EMPTY
from llamero.limits.models import LimitSet
from llamero.usage.models import UsageHour

NO_MEMBERS = {
    f"{name}-{part}_FORMS": 0 for name in ("memberships", "limits") for part in ("TOTAL", "INITIAL")
}


def test_each_list_says_where_its_rows_come_from() -> None:
    listed = {model.__name__ for model in admin.site._registry}

    # The report of usage is no list.
    assert set(WHEN_EMPTY) == listed - {"UsageHour"}
    assert set(ICONS) == listed


@pytest.mark.parametrize(
    ("query", "words"), [("", "No teams yet"), ("?q=nowhere", "Nothing matches")]
)
def test_an_empty_list_says_what_to_do(staff_browser: Client, query: str, words: str) -> None:
    page = staff_browser.get(reverse("admin:accounts_team_changelist") + query).text

    assert words in page
    assert "<title>" in page
    assert " Teams | Llamero</title>" in page
    assert ("Members of a team share" in page) is (not query)


def test_dates_are_written_in_one_way(staff_browser: Client) -> None:
    Team.objects.create(name="Grazers")
    team = Team.objects.get()

    page = staff_browser.get(reverse("admin:accounts_team_change", args=[team.pk])).text

    assert f"{team.created_at:%Y-%m-%d %H:%M} UTC" in page


def test_what_one_comes_for_stands_first(staff_browser: Client) -> None:
    page = staff_browser.get("/admin/").text

    places = [
        page.index(f'href="/admin/{path}/"')
        for path in (
            "models_registry/model",
            "models_registry/deployment",
            "control/node",
            "accounts/apikey",
            "usage/usagehour",
            "auth/user",
            "audit/change",
        )
    ]
    assert places == sorted(places)


def test_pages_have_landmarks_and_a_way_past_the_navigation(staff_browser: Client) -> None:
    page = staff_browser.get("/admin/").text

    assert '<main id="start"' in page
    assert 'href="#start"' in page


def test_the_home_page_tells_what_people_changed(staff_browser: Client) -> None:
    staff_browser.post(reverse("admin:accounts_team_add"), {"name": "Grazers"} | NO_MEMBERS)
    team = Team.objects.get()

    assert re.search(r">Team Grazers</a> created <small>by sam,", staff_browser.get("/admin/").text)
    history = staff_browser.get(reverse("admin:accounts_team_history", args=[team.pk])).text
    found = re.search(r'href="(/admin/audit/change/\?kind=accounts.team&amp;[^"]*)"', history)
    assert found is not None
    add = reverse("admin:accounts_team_add")
    # The page that follows is told of it, and no other.
    staff_browser.post(add, {"name": "Strangers"} | NO_MEMBERS, follow=True)
    log = staff_browser.get(html.unescape(found[1])).text
    assert "Grazers" in log
    assert "Strangers" not in log


def test_who_may_not_read_the_log_is_told_no_changes(staff_browser: Client) -> None:
    staff_browser.post(reverse("admin:accounts_team_add"), {"name": "Grazers"} | NO_MEMBERS)
    User.objects.filter(username="sam").update(is_superuser=False)

    assert "Recent changes" not in staff_browser.get("/admin/").text


def test_an_empty_list_asks_nobody_for_what_they_may_not_do(staff_browser: Client) -> None:
    User.objects.filter(username="sam").update(is_superuser=False)
    sam = User.objects.get(username="sam")
    sam.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    for model in set(admin.site._registry) - {UsageHour}:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        page = staff_browser.get(reverse(name)).text.partition("<main")[2]
        assert "/add/" not in page
    asks = re.compile(r"(?:^|[.:] )(Add|Upload|Bring|Make|Create|Fetch|Import)\b")
    assert not [words for words in WHEN_EMPTY.values() if asks.search(words)]


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("models_registry.uploadquota", "Upload quota of pat", "Upload quota of pat"),
        ("accounts.team", "Teams", "Team Teams"),
        ("accounts.team", "Team A", "Team A"),
        ("accounts.apikey", "ci (llm_abcdefgh_…)", "API key ci (llm_abcdefgh_…)"),
        ("gone.thing", "old", "gone.thing old"),
    ],
)
def test_a_change_names_the_kind_of_thing_once(kind: str, text: str, words: str) -> None:
    assert name_thing(kind, text) == words


@pytest.mark.django_db
def test_what_changed_is_said_once_for_limits() -> None:
    team = Team.objects.create(name="Grazers")
    limits = LimitSet.objects.create(team=team)
    assert name_thing("limits.limitset", str(limits)) == "Limits of team Grazers"
