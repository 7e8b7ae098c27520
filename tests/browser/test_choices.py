"""Choosing one of very many: boxes that search, with the keyboard alone."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Complaints
from tests.browser.test_fit import find_serious_faults
from tests.llamero.streaming.gateway import Gateway

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MORE_THAN_ARE_LISTED = 201
TABLE = "models_registry_model"


@pytest.fixture
def crowd(gateway: Gateway) -> Iterator[None]:
    """Many models, made after one there is; nobody else meets them."""
    with closing(sqlite3.connect(gateway.home / "llamero.sqlite3")) as database:
        known = [row[1] for row in database.execute(f"PRAGMA table_info({TABLE})")]
        columns = ", ".join(sorted({*known} - {"id", "slug"}))
        for number in range(MORE_THAN_ARE_LISTED):
            database.execute(
                f"INSERT INTO {TABLE} (slug, {columns}) SELECT ?, {columns} FROM {TABLE} LIMIT 1",
                (f"crowd-{number}",),
            )
        database.commit()
        yield
        database.execute(f"DELETE FROM {TABLE} WHERE slug LIKE 'crowd-%'")
        database.commit()


def choose(page: Page, label: str, text: str) -> Locator:
    """Open a box, search, and take the first that is found, without a mouse."""
    box = page.get_by_role("combobox", name=label)
    box.focus()
    page.keyboard.press("Enter")
    page.keyboard.type(text)
    expect(page.get_by_role("searchbox", name="Search", exact=True)).to_be_focused()
    expect(page.get_by_role("option", name=text)).to_be_visible()
    page.keyboard.press("Enter")
    expect(box).to_contain_text(text)
    return box


def test_a_report_is_narrowed_by_the_keyboard(
    page: Page, crowd: None, complaints: Complaints
) -> None:
    page.goto("/admin/usage/usagehour/")
    expect(page.get_by_role("combobox", name="Model")).to_contain_text("All")
    choose(page, "Model", "crowd-150")
    page.get_by_role("button", name="Show", exact=True).press("Enter")
    page.wait_for_url("**model=*")
    expect(page.get_by_role("combobox", name="Model")).to_contain_text("crowd-150")
    assert find_serious_faults(page, complaints) == []


def test_an_upload_becomes_a_version_of_one_of_many(
    page: Page, crowd: None, complaints: Complaints
) -> None:
    page.goto("/admin/models_registry/model/upload/")
    name = page.get_by_label("Published id")
    expect(name).to_be_visible()
    choose(page, "Add a version to", "crowd-77")
    expect(name).to_be_hidden()
    assert find_serious_faults(page, complaints) == []


def test_a_key_is_for_some_of_many(page: Page, crowd: None, complaints: Complaints) -> None:
    page.goto("/admin/accounts/apikey/add/")
    box = page.get_by_role("combobox", name="Allowed models")
    for text in ("crowd-33", "crowd-44"):
        box.get_by_role("searchbox").press_sequentially(text)
        expect(page.get_by_role("option", name=text)).to_be_visible()
        page.keyboard.press("Enter")
        expect(box.get_by_title(text)).to_be_visible()
    assert find_serious_faults(page, complaints) == []
