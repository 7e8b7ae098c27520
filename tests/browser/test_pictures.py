"""Takes the pictures of docs/: ``make pictures``. They show a real model at work."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import PATIENCE_MS, sign_in
from tests.live import CHAT_MODEL, LiveLlamero

FOLDER = os.environ.get("PICTURES", "")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.model,
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="make pictures"),
]
PAGES = {
    "overview": "/admin/",
    "model": "/admin/models_registry/model/?q=smol",
    "deployment": "/admin/models_registry/deployment/?q=smol",
}
SIZES = {"desktop": (1180, 820), "phone": (390, 844)}


def ask_often(live: LiveLlamero, count: int) -> None:
    """Have the model write, so that there is something to see."""

    def ask(number: int) -> None:
        body = {
            "model": CHAT_MODEL,
            "max_tokens": 48,
            "messages": [{"role": "user", "content": f"Tell me {number} things about llamas."}],
        }
        headers = {"Authorization": f"Bearer {live.api_key}"}
        url = f"{live.base_url}/v1/chat/completions"
        httpx2.post(url, json=body, headers=headers, timeout=120).raise_for_status()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(count)))


@pytest.mark.parametrize(
    ("name", "size", "theme"),
    [
        ("overview", "desktop", "light"),
        ("overview", "phone", "dark"),
        ("model", "desktop", "light"),
        ("deployment", "desktop", "dark"),
    ],
)
def test_a_picture_is_taken(
    browser: Browser, live_llamero: LiveLlamero, name: str, size: str, theme: str
) -> None:
    width, height = SIZES[size]
    profile = browser.new_context(
        base_url=live_llamero.base_url,
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
    )
    profile.set_default_timeout(PATIENCE_MS)
    page = profile.new_page()
    sign_in(page, live_llamero.admin_name, live_llamero.admin_password)
    ask_often(live_llamero, 12)
    page.goto(PAGES[name])
    if "?q=" in PAGES[name]:
        page.get_by_role("link", name=CHAT_MODEL).first.click()
    expect(page.get_by_text("Rendering…")).to_have_count(0)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask_often, live_llamero, 6)
        page.wait_for_timeout(4000)
        path = Path(FOLDER) / f"{name}-{size}-{theme}.jpg"
        page.screenshot(path=path, type="jpeg", quality=55)
        asking.result()
    profile.close()
    assert path.stat().st_size < 150_000
