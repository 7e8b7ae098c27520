"""Lists of the admin: named by what is in them, and of use where nothing is."""

import html
import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from llamero.accounts.models import Team
from llamero.console.sidebar import ICONS
from llamero.console.templatetags.lists import WHEN_EMPTY

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
