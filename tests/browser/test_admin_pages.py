"""The admin's main pages: without serious accessibility faults, fit for a phone and a keyboard."""

import time

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Complaints
from tests.browser.test_fit import find_serious_faults

pytestmark = pytest.mark.browser
NARROW = {"width": 390, "height": 844}
PAGES = {
    "overview": "/admin/",
    "models": "/admin/models_registry/model/",
    "model": "/admin/models_registry/model/1/change/",
    "version": "/admin/models_registry/modelversion/1/change/",
    "deployments": "/admin/models_registry/deployment/",
    "deployment": "/admin/models_registry/deployment/1/change/",
    "new-deployment": "/admin/models_registry/deployment/add/",
    "nodes": "/admin/control/node/",
    "keys": "/admin/accounts/apikey/",
    "new-key": "/admin/accounts/apikey/add/",
    "key": "/admin/accounts/apikey/1/change/",
    "new-alert": "/admin/usage/usagealert/add/",
    "teams": "/admin/accounts/team/",
    "upload": "/admin/models_registry/model/upload/",
}
QUICK = {"overview", "deployment"}
each_page = pytest.mark.parametrize(
    "name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in PAGES]
)


def settle(page: Page, name: str) -> None:
    """Open a page, and wait until what comes by itself is there."""
    page.goto(PAGES[name])
    expect(page.get_by_text("Rendering…")).to_have_count(0)


def come_late(route: Route) -> None:
    """Let a request through after a while."""
    time.sleep(0.3)
    route.continue_()


@each_page
def test_no_serious_accessibility_faults(page: Page, name: str, complaints: Complaints) -> None:
    settle(page, name)
    faults = find_serious_faults(page, complaints)
    page.emulate_media(color_scheme="dark")
    page.evaluate("document.documentElement.classList.add('dark')")

    assert faults + find_serious_faults(page, complaints) == []


@each_page
def test_a_phone_needs_no_sideways_scrolling(page: Page, name: str) -> None:
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    settle(page, name)

    assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]


def test_a_step_can_be_taken_by_the_keyboard(page: Page) -> None:
    settle(page, "deployment")
    # As on a slow connection: the page is there before the script that uncovers it.
    page.route("**/alpine.js*", come_late)
    page.get_by_role("button", name="Restart", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Restart: smol?")).to_be_visible()
    expect(page.get_by_role("button", name="Restart", exact=True)).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_text("smol will restart.")).to_be_visible()


def test_what_the_theme_opens_by_clicks_is_reached_by_the_keyboard(page: Page) -> None:
    settle(page, "deployments")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.get_by_role("button", name="Filters").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Apply Filters")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="admin").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    menu = page.get_by_role("button", name="Show or hide the navigation")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="API keys")).to_be_visible()


def test_the_form_folds_what_few_need(page: Page) -> None:
    settle(page, "deployment")
    expect(page.get_by_label("Context length")).to_be_visible()
    expect(page.get_by_label("K cache type")).to_be_hidden()

    page.get_by_text("Memory and cache").click()

    expect(page.get_by_label("K cache type")).to_be_visible()
