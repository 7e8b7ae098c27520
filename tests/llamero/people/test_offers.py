"""No page offers a role what it may not do: every address on it opens, and so does what it asks."""

import re

import pytest
from django.test import Client

from llamero.people.roles import OPERATORS, VIEWERS
from tests.llamero.people.conftest import browser_of

# What pages lead to, and what their scripts fetch by themselves.
ADDRESS = re.compile(r'(?:(?:href|action)="(/[^"#?]*)|data-[a-z-]*url="(/[^"]*))')
INLINE = re.compile(r'<script(?![^>]*(?:\ssrc=|type="application/json"))|\son[a-z]+="|"javascript:')
# Files, what ends the session or makes a key, and what wants to know for which field it is asked.
ELSEWHERE = re.compile(r"/(static/|admin/(logout|autocomplete)/|account/|openapi.json|favicon)")


def offers_of(browser: Client, path: str) -> set[str]:
    """Open a page; give the addresses on it."""
    answer = browser.get(path, follow=True)
    # Steps are taken by POST alone.
    assert answer.status_code in (200, 405), path
    is_page = answer.headers.get("Content-Type", "").startswith("text/html")
    # The policy of our pages lets none of these run.
    assert not (is_page and INLINE.search(answer.text)), path
    found = ADDRESS.findall(answer.text) if is_page else []
    return {one for pair in found for one in pair if one and not ELSEWHERE.match(one)}


@pytest.mark.parametrize("role", [VIEWERS, pytest.param(OPERATORS, marks=pytest.mark.slow)])
def test_all_that_pages_offer_opens(role: str, things: dict[str, int]) -> None:
    browser = browser_of(role)
    seen: set[str] = set()
    waiting = {"/", "/admin/", "/account", "/playground"}
    while waiting:
        path = waiting.pop()
        seen.add(path)
        waiting |= offers_of(browser, path) - seen
    assert (
        f"/admin/models_registry/deployment/{things['models_registry.deployment']}/change/" in seen
    )


def test_only_who_may_change_it_has_a_page_that_asks_again(things: dict[str, int]) -> None:
    path = f"/admin/models_registry/deployment/{things['models_registry.deployment']}/change/"
    assert "data-panel-url" not in browser_of(VIEWERS, name="vic").get(path).text
    assert "data-panel-url" in browser_of(OPERATORS, name="oda").get(path).text


def test_who_has_no_right_to_the_admin_is_told_so(db: None) -> None:
    browser = browser_of(None, is_staff=False)
    page = browser.get("/admin/", follow=True).text
    assert "no right to the admin" in page
    assert 'href="/account"' in page
    assert 'action="/account/sign-out"' in page
    assert "no right to the admin" not in Client().get("/admin/", follow=True).text
    landing = browser.get("/").text
    assert "/admin/" not in landing
    assert 'href="/playground"' not in landing
    refused = browser.get("/playground")
    assert refused.status_code == 403
    assert 'href="/account"' in refused.text


def test_the_menu_marks_where_one_is(things: dict[str, int]) -> None:
    browser = browser_of(OPERATORS)
    for path in ("/admin/", "/admin/accounts/apikey/", "/admin/models_registry/model/"):
        page = browser.get(path).text
        marked = re.findall(r'<a href="([^"]*)" class="[^"]* active"', page)
        assert marked == [path]
