"""Embeddings and reranking from a page: the API's views, for whoever is signed in there."""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

pytestmark = pytest.mark.django_db(transaction=True)
ROUTES = ["embeddings", "rerank"]


def post(browser: Client, route: str) -> tuple[int, str]:
    """Ask for a model that is not there; give the status and the error's code."""
    body = {"model": "none", "input": ["x"], "query": "x", "documents": ["x"]}
    answer = browser.post(
        f"/playground/compute/{route}", json.dumps(body), content_type="application/json"
    )
    return answer.status_code, answer.json()["error"]["code"]


def make_browser(*, is_staff: bool, enforce_csrf_checks: bool = False) -> Client:
    """Sign somebody in."""
    browser = Client(enforce_csrf_checks=enforce_csrf_checks)
    browser.force_login(User.objects.create_user("sam", password="x", is_staff=is_staff))
    return browser


@pytest.mark.parametrize("route", ROUTES)
def test_the_staff_needs_no_key(route: str) -> None:
    assert post(make_browser(is_staff=True), route) == (404, "model_not_found")


@pytest.mark.parametrize("route", ROUTES)
def test_others_are_refused(route: str) -> None:
    assert post(Client(), route)[0] == 401
    assert post(make_browser(is_staff=False), route)[0] == 401


@pytest.mark.parametrize("route", ROUTES)
def test_other_sites_pages_are_refused(route: str) -> None:
    assert post(make_browser(is_staff=True, enforce_csrf_checks=True), route)[0] == 403
