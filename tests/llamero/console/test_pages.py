"""Who may open which page, and what the pages may load."""

import re

import pytest
from django.template.loader import render_to_string
from django.test import Client

from llamero.playground.views.pages import NUMBERS, SLIDERS
from models_registry.models import Deployment, Model, ModelVersion

STAFF_PAGES = ["/playground", "/overview"]


@pytest.fixture
def models(db: None) -> None:
    """A ready chat model with a hostile reason, and an embedding model."""
    for slug, kind in (("smol", "chat"), ("minilm", "embedding")):
        model = Model.objects.create(slug=slug, title=slug, kind=kind)
        facts = {"architecture": "llama", "quantization": "Q4_1"}
        ModelVersion.objects.create(
            model=model, number=1, state="ready", is_current=True, facts=facts
        )
        reason = "<img src=x onerror=alert(1)>"
        Deployment.objects.create(slug=slug, model=model, state="failed", reason=reason)


def test_the_playground_opens_for_the_staff(staff_browser: Client) -> None:
    answer = staff_browser.get("/playground")

    assert answer.status_code == 200
    page = answer.content.decode()
    for field in (*SLIDERS, *NUMBERS):
        assert f'name="{field.name}"' in page


@pytest.mark.parametrize("path", STAFF_PAGES)
def test_strangers_are_sent_to_the_login_page(client: Client, db: None, path: str) -> None:
    answer = client.get(path)

    assert (answer.status_code, answer["Location"]) == (302, f"/admin/login/?next={path}")


@pytest.mark.parametrize("path", STAFF_PAGES)
def test_users_who_are_not_staff_are_refused(plain_browser: Client, path: str) -> None:
    answer = plain_browser.get(path)

    assert answer.status_code == 403
    assert "Not for you" in answer.content.decode()


@pytest.mark.parametrize("path", STAFF_PAGES)
def test_pages_take_no_other_method(staff_browser: Client, path: str) -> None:
    assert staff_browser.post(path).status_code == 405


@pytest.mark.parametrize("path", ["/", "/playground"])
def test_our_pages_run_under_a_strict_policy(staff_browser: Client, path: str) -> None:
    answer = staff_browser.get(path)

    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page = answer.content.decode()
    assert not re.findall(r"<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=|<style", page)


def test_the_playground_offers_models_with_their_kinds(staff_browser: Client, models: None) -> None:
    offered = staff_browser.get("/playground/models").json()["models"]

    kinds = {model["id"]: (model["kind"], model["embeds"]) for model in offered}
    assert kinds == {"smol": ("chat", False), "minilm": ("embedding", True)}
    assert {model["state"] for model in offered} == {"failed"}
    assert offered[0]["facts"][:2] == ["llama", "Q4_1"]


def test_the_admin_home_shows_each_deployment_with_its_reason(
    staff_browser: Client, models: None
) -> None:
    page = staff_browser.get("/admin/").content.decode()

    assert "smol" in page
    assert "minilm" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<img src=x" not in page
    assert 'href="/playground"' in page


def test_the_live_part_of_the_admin_home_comes_alone(staff_browser: Client, models: None) -> None:
    part = staff_browser.get("/overview").content.decode()

    assert "smol" in part
    assert "<html" not in part


def test_the_front_page_names_the_api(client: Client) -> None:
    assert "http://testserver/v1" in client.get("/").content.decode()


def test_the_icon_is_found_where_browsers_look(client: Client) -> None:
    assert client.get("/favicon.ico")["Location"] == "/static/llamero/logo.svg"


def test_a_page_that_does_not_exist_has_a_page(client: Client, db: None) -> None:
    answer = client.get("/nowhere")

    assert answer.status_code == 404
    assert "Nothing grazes here" in answer.content.decode()


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_error_pages_need_no_context(status: int) -> None:
    assert str(status) in render_to_string(f"{status}.html")
