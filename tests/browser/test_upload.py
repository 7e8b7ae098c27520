"""The upload page: what is no model is refused at once; cuts, reloads and restarts cost nothing."""

import contextlib
import hashlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE_MS, Complaints
from tests.inference.gguf.builder import I8, Draft, Tensor
from tests.llamero.streaming.gateway import Gateway

pytestmark = pytest.mark.browser
UPLOAD = "/admin/models_registry/model/upload/"
SLOWLY = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 1_500_000}
QUICKLY = SLOWLY | {"uploadThroughput": -1}
NUM_BYTES = 8 * 2**20


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that passes the inspector, with a tensor of some megabytes."""
    big = Tensor("blk.0.ffn_up.weight", (NUM_BYTES,), I8, 64, NUM_BYTES)
    return replace(Draft(), tensors=(*Draft().tensors, big)).write(tmp_path, "big.gguf")


def slow_down(page: Page, conditions: dict[str, object]) -> None:
    """Set how fast the line is."""
    tools = page.context.new_cdp_session(page)
    tools.send("Network.enable")
    tools.send("Network.emulateNetworkConditions", conditions)


def send(page: Page, path: Path) -> None:
    """Choose a file."""
    page.locator("[data-files]").set_input_files(path)


def wait_for_bytes(page: Page) -> None:
    """Return when a piece has arrived, and more is to come."""
    expect(page.locator("[data-part=words]")).to_contain_text("left")


def test_what_is_no_model_is_refused_on_the_page(
    page: Page, complaints: Complaints, tmp_path: Path
) -> None:
    path = tmp_path / "page.gguf"
    path.write_text("<!doctype html><title>Sign in</title>")
    page.goto(UPLOAD)
    # The browser tells its console of every refusal.
    complaints.is_deaf = True
    send(page, path)
    expect(page.locator("[data-part=words]")).to_contain_text("Refused: This is a web page")
    page.get_by_role("button", name="Remove page.gguf").click()
    expect(page.locator(".upload-file")).to_have_count(0)


def keep(gateway: Gateway, path: Path) -> None:
    """Have a file in the store, as an import leaves it."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    blob = gateway.home / "models" / sha256[:2] / sha256
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(path.read_bytes())
    row = (sha256, blob.stat().st_size, "", "2026-05-01 10:00:00")
    columns = "sha256, size_bytes, owner, created_at"
    database = sqlite3.connect(gateway.home / "llamero.sqlite3", timeout=PATIENCE_MS / 1000)
    with contextlib.closing(database), database:
        database.execute(
            f"INSERT INTO models_registry_modelfile ({columns}) VALUES (?, ?, ?, ?)", row
        )


def test_a_file_that_is_here_is_not_sent_again(
    page: Page, gateway: Gateway, tmp_path: Path
) -> None:
    path = Draft().write(tmp_path, "here.gguf")
    keep(gateway, path)
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.method) if one.method == "PATCH" else None)
    page.goto(UPLOAD)
    send(page, path)

    row = page.locator(".upload-file")
    expect(row.locator("[data-part=words]")).to_contain_text("was here already")
    expect(row.get_by_role("button", name="Pause")).to_be_hidden()
    assert sent == []


def upload_through_cuts(page: Page, complaints: Complaints, gateway: Gateway, model: Path) -> None:
    """Upload a file, with a pause, a reload and a restart of the gateway on the way."""
    page.goto(UPLOAD)
    slow_down(page, SLOWLY)
    page.on("dialog", lambda dialog: dialog.accept())
    send(page, model)
    wait_for_bytes(page)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("[data-part=words]")).to_contain_text("paused")
    page.reload()
    expect(page.locator("[data-part=words]")).to_contain_text("Choose the file again")
    send(page, model)
    wait_for_bytes(page)
    complaints.is_deaf = True
    gateway.stop()
    gateway.start()
    slow_down(page, QUICKLY)
    words = page.locator("[data-part=words]")
    expect(words).to_contain_text("being hashed and inspected", timeout=3 * PATIENCE_MS)


def came_whole(gateway: Gateway, model: Path) -> bool:
    """Whether the gateway has the file, to the byte."""
    with model.open("rb") as file:
        wanted = hashlib.file_digest(file, "sha256").hexdigest()
    folder = gateway.home / "models" / ".incoming"
    found = [path for path in folder.iterdir() if path.stat().st_size == model.stat().st_size]
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in found] == [wanted]


@pytest.mark.slow
def test_an_upload_survives_a_reload_and_a_restart(
    page: Page, complaints: Complaints, gateway: Gateway, model: Path
) -> None:
    upload_through_cuts(page, complaints, gateway, model)
    assert came_whole(gateway, model)


@pytest.mark.slow
@pytest.mark.model
def test_a_real_model_survives_them_too(
    page: Page, complaints: Complaints, gateway: Gateway, smollm2_path: Path
) -> None:
    upload_through_cuts(page, complaints, gateway, smollm2_path)
    assert came_whole(gateway, smollm2_path)
