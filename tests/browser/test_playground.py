"""The playground in a real browser, before a data plane that does as it is told."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Complaints, answer_of, ask, sign_in, wait_until_usable
from tests.llamero.streaming.gateway import Gateway

pytestmark = pytest.mark.browser
NOTE_SOCKETS = """
window.openSockets = [];
window.WebSocket = class extends WebSocket {
  constructor(...parameters) {
    super(...parameters);
    window.openSockets.push(this);
  }
};
"""


def test_an_answer_streams_in_and_ends_with_its_numbers(playground: Page) -> None:
    ask(playground, "endless")
    body = answer_of(playground)
    expect(body).to_contain_text("word word")
    early = len(body.inner_text())

    playground.wait_for_function(
        "early => document.querySelector('.message-assistant .message-body')"
        ".innerText.length > early",
        arg=early,
    )

    playground.get_by_role("button", name="Stop").click()
    expect(playground.locator(".message-assistant .message-stats")).to_contain_text("tok/s")
    expect(playground.locator(".message-assistant .message-stats")).to_contain_text("first token")


def test_stop_ends_the_answer_and_another_can_be_asked_for(playground: Page) -> None:
    ask(playground, "endless")
    expect(answer_of(playground)).to_contain_text("word")

    playground.get_by_role("button", name="Stop").click()

    expect(playground.locator(".message-assistant .message-stats")).to_contain_text("stopped")
    stopped = answer_of(playground).inner_text()
    ask(playground, "hello")
    expect(answer_of(playground)).to_have_text("You said hello.")
    assert playground.locator(".message-assistant .message-body").first.inner_text() == stopped


def test_all_works_by_the_keyboard_alone(playground: Page) -> None:
    prompt = playground.get_by_label("Message", exact=True)
    expect(prompt).to_be_focused()
    playground.keyboard.type("endless")
    playground.keyboard.press("Shift+Enter")
    playground.keyboard.type("second line")
    assert prompt.input_value() == "endless\nsecond line"

    playground.keyboard.press("Enter")
    expect(answer_of(playground)).to_contain_text("word")
    expect(prompt).to_be_focused()
    playground.keyboard.press("Escape")

    expect(playground.locator(".message-assistant .message-stats")).to_contain_text("stopped")
    expect(prompt).to_be_focused()
    expect(playground.get_by_role("button", name="Regenerate")).to_be_visible()
    playground.keyboard.press("Shift+Tab")
    playground.keyboard.press("Shift+Tab")
    expect(playground.get_by_role("button", name="Regenerate")).to_be_focused()
    # Stopped in the same breath, before the server has heard of it.
    playground.keyboard.press("Enter")
    playground.keyboard.press("Escape")
    expect(playground.locator(".branch-place")).to_have_text("2/2")
    expect(playground.get_by_role("button", name="Send")).to_be_visible()


def test_a_suggestion_is_sent_by_a_click(playground: Page) -> None:
    playground.locator(".suggestion").nth(1).click()

    expect(answer_of(playground)).to_have_text("You said Write.")


def test_markdown_is_laid_out(playground: Page) -> None:
    ask(playground, "rich")

    body = answer_of(playground)
    expect(body.locator("strong")).to_have_text("sure-footed")
    expect(body.locator("ol li")).to_have_count(2)
    expect(body.locator("table td")).to_have_count(5)
    link = body.locator("a")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")


def test_hostile_output_stays_text(playground: Page) -> None:
    requests: list[str] = []
    playground.on("request", lambda request: requests.append(request.url))

    ask(playground, "hostile")

    body = answer_of(playground)
    expect(body).to_contain_text("the end")
    expect(body).to_contain_text("<script>window.broken = 1</script>")
    expect(body.locator("script, img, style, [onerror]")).to_have_count(0)
    hrefs = body.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert not [href for href in hrefs if href and not href.startswith("http")]
    assert playground.evaluate("window.broken") is None
    assert not [url for url in requests if "evil.example" in url]


def test_a_refusal_is_shown_in_words_and_can_be_tried_again(playground: Page) -> None:
    ask(playground, "refuse")

    error = playground.locator(".message-assistant .message-error")
    expect(error).to_contain_text("The model is not ready")
    expect(error).to_contain_text("The model is being loaded.")
    expect(playground.get_by_role("button", name="Regenerate")).to_be_visible()


def test_settings_are_checked_before_anything_is_sent(playground: Page) -> None:
    playground.locator("#temperature").fill("9")

    ask(playground, "hello")

    expect(playground.locator(".message")).to_have_count(0)
    playground.get_by_role("button", name="Reset", exact=True).click()
    assert playground.locator("#temperature").input_value() == "0.8"
    ask(playground, "hello")
    expect(answer_of(playground)).to_have_text("You said hello.")


def test_settings_survive_a_reload(playground: Page) -> None:
    playground.locator("#temperature").fill("0.2")
    playground.get_by_label("System prompt").fill("Be brief.")
    playground.get_by_label("Model", exact=True).select_option("sleepy")
    expect(playground.locator("#model-state-text")).to_have_text("Loading")

    playground.reload()

    expect(playground.locator("#temperature")).to_have_value("0.2")
    expect(playground.get_by_label("System prompt")).to_have_value("Be brief.")
    expect(playground.get_by_label("Model", exact=True)).to_have_value("sleepy")


def test_an_answer_survives_a_reload(playground: Page) -> None:
    ask(playground, "hello")
    expect(playground.get_by_role("button", name="Send")).to_be_visible()
    ask(playground, "count")
    expect(answer_of(playground)).to_contain_text("0 1 2 3")

    playground.reload()

    expect(playground.get_by_role("button", name="Stop")).to_be_visible()
    whole = " ".join(str(number) for number in range(120))
    expect(answer_of(playground)).to_have_text(whole)
    expect(playground.locator(".message-assistant .message-stats").last).to_contain_text("tok/s")
    expect(playground.locator(".message-user .message-body").last).to_have_text("count")
    expect(playground.locator(".message-assistant .message-body").first).to_have_text(
        "You said hello."
    )

    playground.reload()

    expect(answer_of(playground)).to_have_text(whole)
    playground.get_by_role("button", name="New chat").click()
    playground.reload()
    expect(playground.locator(".message")).to_have_count(0)


def test_an_answer_goes_on_when_the_connection_breaks(page: Page) -> None:
    page.add_init_script(NOTE_SOCKETS)
    page.goto("/playground")
    wait_until_usable(page)
    ask(page, "count")
    expect(answer_of(page)).to_contain_text("0 1 2 3")

    page.evaluate("window.openSockets.at(-1).close()")

    expect(answer_of(page)).to_have_text(" ".join(str(number) for number in range(120)))
    assert page.evaluate("window.openSockets.length") == 2


def test_copy_and_regenerate(playground: Page, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(playground, "hello")
    expect(playground.locator(".message-stats .stat").first).to_be_visible()

    answer = playground.locator(".message-assistant")
    answer.get_by_role("button", name="Copy").click()
    assert playground.evaluate("navigator.clipboard.readText()") == "You said hello."
    answer.get_by_role("button", name="Regenerate").click()
    expect(answer.locator(".branch-place")).to_have_text("2/2")
    expect(answer).to_have_count(1)
    expect(answer.locator(".message-body")).to_have_text("You said hello.")


def test_another_answer_has_another_seed(playground: Page) -> None:
    playground.locator("#seed").fill("7")
    with playground.expect_request("**/turns") as first:
        ask(playground, "hello")
    expect(playground.locator(".message-stats .stat").first).to_be_visible()
    with playground.expect_request("**/turns") as second:
        playground.get_by_role("button", name="Regenerate").click()
    seeds = [asked.value.post_data_json["request"]["seed"] for asked in (first, second)]
    assert seeds[0] == 7
    assert seeds[1] != 7
    expect(playground.locator(".branch-place").last).to_have_text("2/2")


def test_a_lost_connection_is_told_and_comes_back(
    playground: Page, gateway: Gateway, complaints: Complaints
) -> None:
    ask(playground, "endless")
    expect(answer_of(playground)).to_contain_text("word")

    gateway.stop()
    expect(playground.locator("#connection-text")).to_have_text("Reconnecting")
    expect(playground.locator(".message-assistant .message-note")).to_contain_text(
        "Connection lost"
    )
    gateway.start()

    expect(playground.locator("#connection-text")).to_have_text("Connected")
    # This data plane dies with its gateway, so the answer is not found again.
    expect(playground.locator(".message-assistant .message-error")).to_contain_text(
        "Connection lost"
    )
    ask(playground, "hello")
    expect(answer_of(playground)).to_have_text("You said hello.")
    # The browser itself complains about each vain try.
    assert all(re.search("ERR_|WebSocket", complaint) for complaint in complaints)
    complaints.clear()


def test_whoever_signed_out_elsewhere_is_told_to_sign_in(
    page: Page, context: BrowserContext, complaints: Complaints
) -> None:
    context.clear_cookies()
    sign_in(page, "admin", "admin")
    other = context.new_page()
    other.goto("/admin/")
    # The browser itself complains about each refusal.
    complaints.is_deaf = True
    with other.expect_navigation():
        other.evaluate("document.querySelector('form[action$=\"logout/\"]').submit()")

    ask(page, "hello")

    expect(page.locator("#connection-text")).to_have_text("Signed out")
    link = page.get_by_role("link", name="Sign in again")
    expect(link).to_have_attribute("href", "/admin/login/?next=/playground")
    expect(page.get_by_label("Message", exact=True)).to_have_value("hello")


def test_the_theme_is_shared_with_the_admin(playground: Page) -> None:
    playground.get_by_role("button", name="Switch between light and dark").click()
    expect(playground.locator("html")).to_have_class("dark")

    playground.goto("/admin/")

    expect(playground.locator("html")).to_have_class(re.compile("dark"))


def test_the_admin_leads_to_the_playground(playground: Page) -> None:
    playground.goto("/admin/")
    playground.locator("#nav-sidebar").get_by_role("link", name="Playground").click()

    playground.wait_for_url("**/playground")
