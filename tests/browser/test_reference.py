"""The API's reference page: complete, usable, and loading nothing from elsewhere."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import PATIENCE_MS
from tests.llamero.streaming.gateway import Gateway

pytestmark = pytest.mark.browser


def test_a_stranger_reads_it_and_tries_a_request(browser: Browser, gateway: Gateway) -> None:
    context = browser.new_context(base_url=gateway.base_url)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto("/")
    page.get_by_role("link", name="API reference").click()

    route = page.locator("#operations-Chat-post_v1_chat_completions")
    expect(route).to_contain_text("Answer a conversation.")
    page.locator("#operations-Models-get_v1_models .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Authorize").first.click()
    page.locator(".auth-container input").first.fill(gateway.key)
    page.locator(".auth-btn-wrapper button.authorize").first.click()
    page.locator(".auth-btn-wrapper button.btn-done").first.click()
    page.get_by_role("button", name="Execute").click()

    expect(page.locator(".live-responses-table")).to_contain_text('"object": "list"')

    # The key is kept for a reload, but not beyond the tab.
    assert gateway.key in page.evaluate("JSON.stringify(sessionStorage)")
    assert gateway.key not in page.evaluate("JSON.stringify(localStorage)")
    assert complaints == []
    assert hosts == {gateway.base_url.removeprefix("http://")}
    context.close()
