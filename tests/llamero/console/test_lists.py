"""Lists of the admin: named by what is in them, and of use where nothing is."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from llamero.accounts.models import Team
from llamero.console.sidebar import ICONS
from llamero.console.templatetags.lists import WHEN_EMPTY


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
