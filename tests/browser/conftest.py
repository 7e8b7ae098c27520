"""A real Chromium, and a gateway for it to look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    StorageState,
    expect,
    sync_playwright,
)

from tests.llamero.streaming.gateway import Gateway

CHROMIUM = Path("/usr/bin/chromium")
# A busy machine is slow, not wrong.
PATIENCE_MS = 40_000
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


# Not for the session: while it lives, no test can run an event loop of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    if not CHROMIUM.exists():
        pytest.skip(f"needs {CHROMIUM}")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One gateway for all tests."""
    served = Gateway(tmp_path_factory.mktemp("gateway"))
    try:
        served.start()
        yield served
    finally:
        served.stop()


class Complaints(list[str]):
    """What the browser's console said against a page. A deaf one hears no more."""

    is_deaf = False

    def hear(self, message: ConsoleMessage) -> None:
        """Note an error."""
        if message.type == "error" and not self.is_deaf:
            self.append(message.text)


@pytest.fixture(scope="module")
def session_state(browser: Browser, gateway: Gateway) -> StorageState:
    """The cookies of a browser that signed in."""
    profile = browser.new_context(base_url=gateway.base_url)
    sign_in(profile.new_page(), "admin", "admin")
    state = profile.storage_state()
    profile.close()
    return state


@pytest.fixture
def context(
    browser: Browser, gateway: Gateway, session_state: StorageState
) -> Iterator[BrowserContext]:
    """A fresh browser profile that is signed in, on a desktop's screen."""
    fresh = browser.new_context(
        base_url=gateway.base_url,
        storage_state=session_state,
        viewport={"width": 1280, "height": 800},
    )
    fresh.set_default_timeout(PATIENCE_MS)
    yield fresh
    fresh.close()


@pytest.fixture
def complaints() -> Complaints:
    """What the browser's console said; a test fails if anything is left here."""
    return Complaints()


@pytest.fixture
def page(context: BrowserContext, complaints: Complaints) -> Iterator[Page]:
    """A tab. Whatever the console complains about fails the test."""
    tab = context.new_page()
    tab.on("console", complaints.hear)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    yield tab
    assert complaints == []


@pytest.fixture
def playground(page: Page) -> Page:
    """The playground, connected, with a model chosen."""
    page.goto("/playground")
    wait_until_usable(page)
    return page


def sign_in(page: Page, name: str, password: str) -> None:
    """Sign in on the way to the playground."""
    page.goto("/playground")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").first.fill(password)
    page.keyboard.press("Enter")
    page.wait_for_url("**/playground")
    wait_until_usable(page)


def wait_until_usable(page: Page) -> None:
    """Return when a message can be sent."""
    page.locator(".suggestion:enabled").first.wait_for()


def ask(page: Page, text: str) -> None:
    """Send a message by the keyboard, once the answer before is kept: none is sent sooner."""
    expect(page.locator("#stop")).to_be_hidden()
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def answer_of(page: Page) -> Locator:
    """Find the text of the last answer."""
    return page.locator(".message-assistant .message-body").last
