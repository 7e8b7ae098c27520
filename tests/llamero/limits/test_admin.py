"""Limits in the admin: on the pages of whose they are, and in a list."""

import re
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from llamero.accounts.models import ApiKey, Team
from llamero.limits.models import LimitSet
from models_registry.models import Model
from tests.llamero.accounts.key_forms import EMPTY

LIST = "admin:limits_limitset_changelist"


@pytest.fixture
def browser(db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password="toor"))
    return client


def fill_in(**limits: Any) -> dict[str, Any]:
    return {"limits-TOTAL_FORMS": "1", "limits-0-time_zone": "UTC"} | {
        f"limits-0-{name}": value for name, value in limits.items()
    }


def test_a_new_key_comes_with_its_limits(browser: Client, ada: User) -> None:
    data = {"name": "ci", "user": ada.pk} | EMPTY | fill_in(requests_per_minute=10)
    assert browser.post(reverse("admin:accounts_apikey_add"), data).status_code == 200
    assert ApiKey.objects.get().limits.requests_per_minute == 10


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("requests_per_minute", "0", "greater than or equal to 1"),
        ("tokens_per_day", "1e9", "whole number"),
        ("money_per_month", "-1", "greater than or equal to 0.0001"),
        ("time_zone", "Berlin", "There is no time zone"),
    ],
)
def test_what_is_wrong_is_told_beside_its_field(
    browser: Client, key: ApiKey, field: str, value: str, message: str
) -> None:
    url = reverse("admin:accounts_apikey_change", args=[key.pk])
    answer = browser.post(url, {"name": "ci", "enabled": "on"} | EMPTY | fill_in(**{field: value}))
    [form] = answer.context["inline_admin_formsets"][0].formset.forms
    assert message in str(form.errors[field])
    assert not LimitSet.objects.exists()


def test_every_page_of_a_subject_has_its_limits(
    browser: Client, key: ApiKey, team: Team, ada: User, model: Model
) -> None:
    pages = {
        "accounts_apikey": key,
        "accounts_team": team,
        "auth_user": ada,
        "models_registry_model": model,
    }
    for name, subject in pages.items():
        page = browser.get(reverse(f"admin:{name}_change", args=[subject.pk])).content.decode()
        assert 'name="limits-TOTAL_FORMS"' in page, name


def test_limits_of_all_together_are_made_once(browser: Client, key: ApiKey) -> None:
    LimitSet.objects.create(key=key, tokens_per_day=7)
    url = reverse("admin:limits_limitset_add")
    data = {"requests_per_minute": "1000", "time_zone": "UTC"}
    assert browser.post(url, data).status_code == 302
    assert "limits of all already" in browser.post(url, data).content.decode()
    page = browser.get(reverse(LIST)).content.decode()
    assert "all together" in page
    assert f"key {key}" in page


def test_the_list_says_what_is_set_in_few_columns(browser: Client, key: ApiKey) -> None:
    LimitSet.objects.create(
        key=key,
        requests_per_minute=1,
        tokens_per_minute=20_000,
        concurrent_requests=2,
        money_per_month=Decimal("12.5"),
    )
    page = browser.get(reverse(LIST)).text
    for words in ("1 request, 20,000 tokens", "2 at once", "12.5 in money a month"):
        assert words in page
    assert re.search(r"\b1\s+set of limits\b", page)
