"""The playground before a real model."""

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS, answer_of, ask, sign_in
from tests.live import CHAT_MODEL, LiveLlamero
from tests.processes import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.model]


@pytest.fixture
def live_page(browser: Browser, live_llamero: LiveLlamero) -> Iterator[Page]:
    """The playground of a whole Llamero."""
    profile = browser.new_context(base_url=live_llamero.base_url)
    profile.set_default_timeout(PATIENCE_MS)
    page = profile.new_page()
    sign_in(page, live_llamero.admin_name, live_llamero.admin_password)
    yield page
    profile.close()


def count_busy_slots(live: LiveLlamero) -> int:
    """Ask the API how many sequences run; it knows from heartbeats, a second or two late."""
    answer = httpx2.get(
        f"{live.base_url}/slots?model={CHAT_MODEL}",
        headers={"Authorization": f"Bearer {live.api_key}"},
    )
    return sum(slot["is_processing"] for slot in answer.raise_for_status().json())


def test_a_model_answers(live_page: Page) -> None:
    live_page.locator("#temperature").fill("0")
    live_page.locator("#max_tokens").fill("24")
    live_page.get_by_label("Model", exact=True).select_option(CHAT_MODEL)

    ask(live_page, "What is the capital of France? One word.")

    expect(live_page.locator(".message-assistant .message-stats")).to_contain_text("tok/s")
    assert "Paris" in answer_of(live_page).inner_text()


def test_stop_frees_the_slot(live_page: Page, live_llamero: LiveLlamero) -> None:
    live_page.locator("#max_tokens").fill("2000")
    live_page.locator("#temperature").fill("1.5")
    ask(live_page, "Tell me a very long story about a llama who counts to a thousand.")
    expect(answer_of(live_page)).to_contain_text(" ")
    wait_until(lambda: count_busy_slots(live_llamero) == 1, seconds=10, what="a busy slot")

    live_page.get_by_role("button", name="Stop").click()

    expect(live_page.locator(".message-assistant .message-stats")).to_contain_text("stopped")
    wait_until(lambda: count_busy_slots(live_llamero) == 0, seconds=10, what="a free slot")


def test_the_admin_home_shows_the_deployments_as_they_are(live_page: Page) -> None:
    live_page.goto("/admin/")

    deployments = live_page.locator("section[aria-labelledby=deployments-title]")
    row = deployments.locator("tr", has_text=CHAT_MODEL)
    expect(row).to_contain_text("Ready")
    expect(live_page.locator(".overview-alert")).to_have_count(0)
