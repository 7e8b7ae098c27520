"""Chats that are kept: branches, history, sharing, two models, several windows."""

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Complaints, answer_of, ask, wait_until_usable
from tests.llamero.streaming.gateway import Gateway

pytestmark = pytest.mark.browser
WHOLE_COUNT = " ".join(str(number) for number in range(120))


def ask_and_wait(page: Page, text: str) -> None:
    """Send a message, and wait for the end of the answer."""
    num_known = page.locator(".message").count()
    ask(page, text)
    expect(page.locator(".message")).to_have_count(num_known + 2)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def act_on(page: Page, what: str) -> None:
    """Use a button of a chat in the list: it is there when the chat is pointed at."""
    page.locator(".chat-item", has_text=what.partition(" ")[2]).first.hover()
    page.get_by_role("button", name=what).first.click()


def make_link(page: Page) -> str:
    """Share what the dialog is about; give the address."""
    page.get_by_role("button", name="Make a link").click()
    field = page.get_by_label("Link")
    expect(field).to_have_value(re.compile("/shared/"))
    return field.input_value()


def test_a_chat_is_kept_branched_renamed_found_shared_and_deleted(
    playground: Page, browser: Browser, gateway: Gateway, complaints: Complaints
) -> None:
    page = playground
    page.set_viewport_size({"width": 1400, "height": 800})
    ask_and_wait(page, "alpaca question")
    ask_and_wait(page, "second question")

    # Edit the first question: another branch, which leads back.
    page.locator(".message-user").first.get_by_role("button", name="Edit").click(force=True)
    page.get_by_label("Edited message").fill("edited alpacas")
    page.get_by_role("button", name="Send", exact=True).first.click()
    expect(answer_of(page)).to_have_text("You said edited.")
    expect(page.locator(".message")).to_have_count(2)
    page.get_by_role("button", name="Earlier branch").click()
    expect(page.locator(".message-user .message-body").last).to_have_text("second question")
    page.reload()
    expect(page.locator(".message")).to_have_count(4)

    act_on(page, "Rename alpaca question")
    page.get_by_label("Name", exact=True).fill("Herding")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page).to_have_title("Herding | Llamero")
    page.get_by_label("Search chats").fill("edited alpacas")
    expect(page.locator(".chat-link")).to_have_text(["Herding"])
    page.get_by_label("Search chats").fill("nothing like it")
    expect(page.locator("#no-chats")).to_have_text("No chat has these words.")
    page.get_by_label("Search chats").fill("")

    act_on(page, "Share Herding")
    address = make_link(page)
    page.get_by_role("button", name="Close", exact=True).click()
    other = page.context.new_page()
    other.goto(address)
    expect(other.locator(".message")).to_have_count(4)
    expect(other.get_by_role("button", name="Edit")).to_have_count(0)
    stranger = browser.new_context(base_url=gateway.base_url).new_page()
    stranger.goto(address)
    assert "/account/sign-in" in stranger.url
    stranger.context.close()

    act_on(page, "Delete Herding")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#welcome")).to_be_visible()
    other.reload()
    expect(other.locator("h1")).to_contain_text("Nothing grazes here")
    assert "/playground/c/" not in page.url


@pytest.mark.slow
def test_two_models_answer_side_by_side(playground: Page) -> None:
    playground.get_by_role("button", name="Compare two models").click()
    ask(playground, "hello")

    columns = playground.locator(".column")
    for column in (columns.nth(0), columns.nth(1)):
        expect(column.locator(".message-assistant .message-body")).to_have_text("You said hello.")
    playground.wait_for_load_state("networkidle")
    playground.reload()
    for column in (columns.nth(0), columns.nth(1)):
        expect(column.locator(".message")).to_have_count(2)
    expect(playground.get_by_label("Second model", exact=True).first).to_be_visible()


@pytest.mark.slow
def test_an_answer_is_kept_though_its_page_was_closed(page: Page, context: BrowserContext) -> None:
    page.goto("/playground")
    wait_until_usable(page)
    ask(page, "count")
    expect(answer_of(page)).to_contain_text("0 1 2 3")
    address = page.url
    page.close()

    later = context.new_page()
    later.goto(address)

    expect(answer_of(later)).to_have_text(WHOLE_COUNT)
    later.reload()
    expect(answer_of(later)).to_have_text(WHOLE_COUNT)
    later.close()


@pytest.mark.slow
def test_windows_of_a_chat_see_what_the_other_said(
    playground: Page, context: BrowserContext
) -> None:
    ask_and_wait(playground, "first question")
    other = context.new_page()
    other.goto(playground.url)
    expect(other.locator(".message")).to_have_count(2)
    wait_until_connected(other)

    ask_and_wait(other, "theirs")
    expect(playground.locator(".message")).to_have_count(2)
    ask_and_wait(playground, "mine")

    expect(playground.locator(".branch-place").last).to_have_text("2/2")
    playground.get_by_role("button", name="Earlier branch").last.click()
    expect(playground.locator(".message-user .message-body").last).to_have_text("theirs")
    expect(other.locator(".message-user .message-body").last).to_have_text("theirs")
    other.close()


def wait_until_connected(page: Page) -> None:
    """Return when a message can be sent in a chat that has some."""
    expect(page.locator("#connection-text")).to_have_text("Connected")
    expect(page.locator("#model option").first).to_be_attached()


@pytest.mark.slow
def test_presets_bring_settings_back(playground: Page) -> None:
    playground.get_by_label("System prompt").fill("Be brief.")
    playground.get_by_role("button", name="Save as preset").click()
    playground.get_by_label("Name of the preset").fill("Brief")
    playground.get_by_role("button", name="Save", exact=True).click()
    expect(playground.locator("#preset")).to_have_value(re.compile(r"\d+"))
    playground.get_by_role("button", name="Reset", exact=True).click()
    playground.reload()

    playground.locator("#preset").select_option(label="Brief")

    expect(playground.get_by_label("System prompt")).to_have_value("Be brief.")
    playground.get_by_role("button", name="Delete preset").click()
    playground.get_by_role("button", name="Delete", exact=True).click()
    expect(playground.locator("#preset")).to_be_disabled()


@pytest.mark.slow
def test_code_of_a_request_has_no_key_and_all_its_fields(playground: Page) -> None:
    playground.get_by_label("System prompt").fill('It\'s "brief".')
    ask_and_wait(playground, "hello")
    playground.locator(".message-assistant").get_by_role("button", name="Code").click()

    code = playground.locator(".code-text")
    expect(code).to_contain_text("Bearer $LLAMERO_API_KEY")
    expect(code).to_contain_text("It'\\''s")
    playground.get_by_role("button", name="Python").click()
    source = code.inner_text()
    compile(source, "playground", "exec")
    assert '"min_p": 0.05' in source
    assert 'os.environ["LLAMERO_API_KEY"]' in source
    playground.get_by_role("button", name="JavaScript").click()
    expect(code).to_contain_text("process.env.LLAMERO_API_KEY")
    playground.keyboard.press("Escape")


@pytest.mark.slow
def test_hostile_titles_and_texts_stay_text(playground: Page) -> None:
    ask_and_wait(playground, "<img src=x onerror='window.broken=1'>")
    act_on(playground, "Share <img")
    address = make_link(playground)

    playground.goto(address)

    expect(playground.locator("h1")).to_contain_text("<img src=x")
    expect(playground.locator(".message-user")).to_contain_text("<img src=x")
    expect(playground.locator("main img")).to_have_count(0)
    assert playground.evaluate("window.broken") is None


@pytest.mark.slow
def test_texts_are_compared_and_mapped(page: Page) -> None:
    models = [
        {"id": "mini", "kind": "embedding", "embeds": True, "state": "ready", "facts": []},
    ]
    page.route("**/playground/models", lambda route: route.fulfill(json={"models": models}))
    data = [{"embedding": vector} for vector in ([1, 0, 0], [1, 0.1, 0], [0, 0, 1])]
    answer = {"data": data, "usage": {"prompt_tokens": 9}}
    page.route("**/compute/embeddings", lambda route: route.fulfill(json=answer))
    page.goto("/playground/embeddings")
    page.get_by_label("Texts").fill("one\ntwo\nthree")

    page.get_by_role("button", name="Compare").click()

    cells = page.locator(".similarities td")
    expect(cells).to_have_text(
        ["", "1.00", "1.00", "0.00", "1.00", "1.00", "0.00", "0.00", "0.00", "1.00"]
    )
    places = page.locator(".plot circle").evaluate_all(
        "all => all.map(one => [+one.getAttribute('cx'), +one.getAttribute('cy')])"
    )
    near, far = (abs(places[0][0] - places[n][0]) for n in (1, 2))
    assert near < far / 4
    page.get_by_role("button", name="Code of the last").click()
    expect(page.locator(".code-text")).to_contain_text("/v1/embeddings")
    page.keyboard.press("Escape")
