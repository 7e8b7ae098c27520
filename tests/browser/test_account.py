"""Somebody who is not of the staff looks after their own keys."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import PATIENCE_MS
from tests.llamero.streaming.gateway import Gateway

pytestmark = pytest.mark.browser


def test_a_user_signs_in_makes_a_key_and_revokes_it(browser: Browser, gateway: Gateway) -> None:
    context = browser.new_context(base_url=gateway.base_url, viewport={"width": 390, "height": 844})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto("/account")
    page.get_by_label("Username").fill("pat")
    page.get_by_label("Password").fill("pat")
    page.keyboard.press("Enter")
    expect(page.get_by_text("You have no keys yet.")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390

    page.get_by_label("What the key is for").fill("laptop")
    page.get_by_role("button", name="Make key").click()
    assert re.fullmatch(r"llm_\w{8}_\w{40}", page.get_by_label("Key").input_value())
    page.get_by_role("link", name="Back to my keys").click()
    expect(page.locator(".key-state")).to_have_text("Active")
    page.locator(".key-actions summary").click()
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator(".key-state")).to_have_text("Revoked")

    page.goto("/playground")
    expect(page.locator("h1")).to_contain_text("Not for you")
    page.goto("/account")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Username")).to_be_visible()
    # The browser itself notes the refused page.
    assert all("403" in complaint for complaint in complaints)
    context.close()
