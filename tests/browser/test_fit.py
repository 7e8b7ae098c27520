"""Our pages fit: a narrow phone, light and dark, and people who do not use a mouse or a screen."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import Complaints, answer_of, ask

pytestmark = pytest.mark.browser
NARROW = {"width": 360, "height": 640}


def show_nothing_yet(page: Page) -> None:
    """Show the page as it opens."""


def show_a_rich_answer(page: Page) -> None:
    """Show a code block and a table that are wider than a phone."""
    ask(page, "rich")
    expect(page.locator(".message-stats .stat").first).to_be_visible()


def show_a_stream(page: Page) -> None:
    """Show an answer that is still coming."""
    ask(page, "endless")
    expect(answer_of(page)).to_contain_text("word")


def show_an_error(page: Page) -> None:
    """Show a refusal."""
    ask(page, "refuse")
    expect(page.locator(".message-assistant .message-error")).to_be_visible()


SCENES = [show_nothing_yet, show_a_rich_answer, show_a_stream, show_an_error]
each_scene = pytest.mark.parametrize("show", SCENES, ids=lambda show: show.__name__)


def find_serious_faults(page: Page, complaints: Complaints) -> list[str]:
    """Name the accessibility faults that keep people out."""
    # Our policy forbids the styles that the examiner itself tries on.
    complaints.is_deaf = True
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {node['html']}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


@each_scene
@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_no_serious_accessibility_faults(
    playground: Page, show: Callable[[Page], None], theme: str, complaints: Complaints
) -> None:
    if theme == "dark":
        playground.get_by_role("button", name="Switch between light and dark").click()
    show(playground)

    assert find_serious_faults(playground, complaints) == []


@pytest.mark.parametrize("path", ["/", "/nowhere"])
def test_plain_pages_have_no_serious_accessibility_faults(
    page: Page, path: str, complaints: Complaints
) -> None:
    page.goto(path)

    assert find_serious_faults(page, complaints) == []
    complaints.clear()


@each_scene
def test_a_phone_needs_no_sideways_scrolling(
    playground: Page, show: Callable[[Page], None]
) -> None:
    playground.set_viewport_size(NARROW)  # type: ignore[arg-type]
    show(playground)

    for element in ("document.documentElement", "document.querySelector('#thread')"):
        assert playground.evaluate(f"{element}.scrollWidth <= {element}.clientWidth")
    expect(playground.get_by_label("Message", exact=True)).to_be_in_viewport()


def test_on_a_phone_two_columns_are_turned_like_pages(playground: Page) -> None:
    playground.set_viewport_size(NARROW)  # type: ignore[arg-type]
    playground.get_by_role("button", name="Compare two models").click()
    # Two of the same would compare nothing.
    expect(playground.locator("#model")).to_have_value("smol")
    expect(playground.locator("#second-model")).to_have_value("sleepy")
    show_a_rich_answer(playground)
    second = playground.locator("#second-column")
    expect(second.locator(".message-stats .stat").first).to_be_attached()

    page = "document.documentElement"
    assert playground.evaluate(f"[{page}.scrollWidth, {page}.scrollHeight]") == [360, 640]
    expect(playground.locator("#composer-hint")).to_be_hidden()
    tab = playground.get_by_role("button", name="B · ")
    expect(tab).to_have_attribute("aria-pressed", "false")
    tab.click()
    expect(tab).to_have_attribute("aria-pressed", "true")
    expect(second).to_be_in_viewport(ratio=0.9)
    assert playground.evaluate("[window.scrollX, window.scrollY]") == [0, 0]


def test_on_a_phone_the_settings_are_a_dialog(playground: Page, complaints: Complaints) -> None:
    playground.set_viewport_size(NARROW)  # type: ignore[arg-type]
    opener = playground.get_by_role("button", name="Settings", exact=True)
    opener.click()

    dialog = playground.get_by_role("dialog", name="Settings")
    expect(dialog.get_by_label("Temperature").first).to_be_visible()
    assert find_serious_faults(playground, complaints) == []
    assert dialog.evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")
    playground.keyboard.press("Escape")

    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()


def test_on_a_phone_a_bad_setting_opens_the_dialog(playground: Page) -> None:
    playground.locator("#temperature").fill("9")
    playground.set_viewport_size(NARROW)  # type: ignore[arg-type]

    ask(playground, "hello")

    expect(playground.get_by_role("dialog", name="Settings")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/nowhere"])
def test_plain_pages_fit_a_phone(page: Page, path: str, complaints: Complaints) -> None:
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.goto(path)

    assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    complaints.clear()


@pytest.mark.parametrize("path", ["/admin/accounts/apikey/add/", "/admin/auth/group/add/"])
def test_lists_to_choose_from_fit_the_page(page: Page, path: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(path)

    expect(page.locator(".selector")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
