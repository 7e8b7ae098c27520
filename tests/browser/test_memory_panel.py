"""A deployment's page shows the memory of the values that are typed, before they are saved."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_the_memory_follows_the_form(page: Page) -> None:
    page.goto("/admin/models_registry/deployment/")
    page.get_by_role("link", name="smol", exact=True).click()
    panel = page.locator("[data-panel-url$=memory]")
    expect(panel).to_contain_text("when every slot is full")
    before = panel.text_content() or ""
    page.get_by_label("Slots").fill("1")
    expect(panel).not_to_have_text(before)
    page.get_by_label("Slots").fill("16")
    expect(panel).to_have_text(before)
    page.get_by_label("Slots").fill("0")
    expect(panel).to_contain_text("when every slot is full")
