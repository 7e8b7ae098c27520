"""Ten thousand rows: every list of the admin, and every page on which one of them is chosen.

A few queries each, and a page of one page's rows.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import models
from django.test import Client
from django.urls import reverse
from django.utils import timezone

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
NUMBER = 10_000
# Few by nature: roles, and who issues tokens. A report is no list, and has a test of its own.
FEW = {"auth.group", "accounts.tokenissuer", "usage.usagehour"}
LISTS = sorted({model._meta.label_lower for model in admin.site._registry} - FEW)
# Pages on which a row is chosen, with the tables of those rows.
CHOOSING = {
    "usage/usagehour": ("accounts.apikey",),
    "models_registry/model/upload": ("models_registry.model",),
    "models_registry/model/fetch": ("models_registry.model",),
    "models_registry/model/import": ("models_registry.model",),
    "models_registry/deployment/add": ("models_registry.modelversion",),
    "models_registry/uploadquota/add": ("auth.user",),
    "accounts/apikey/add": ("accounts.apikey", "models_registry.model"),
    "accounts/team/add": ("accounts.membership",),
    "limits/limitset/add": ("accounts.apikey", "models_registry.model"),
    "usage/usagealert/add": ("accounts.apikey", "models_registry.model"),
}
SEARCHED = {
    "key": "accounts.apikey",
    "user": "auth.user",
    "team": "accounts.team",
    "model": "models_registry.model",
}
MAX_QUERIES = 9
# A report sums twice, and looks whether each of its four boxes can be a list.
MAX_QUERIES_CHOOSING = 14
MAX_BYTES = 1_000_000
MAX_BYTES_CHOOSING = 200_000
# What the rules of a table demand beyond the types of its columns.
NEEDED = {
    "accounts.apikey": ("user", "team", "digest"),
    "batches.batch": ("api_key",),
    "limits.limitset": ("key",),
}
SPECIAL: dict[str, dict[str, Any]] = {
    "accounts.apikey": {"pepper": 1},
    "accounts.identity": {"issuer": "https://issuer.example"},
    "batches.batch": {"endpoint": "/v1/chat/completions"},
    "conversations.storedresponse": {"state": "in_progress"},
    "models_registry.modelversion": {"state": "ready", "is_current": True, "facts": {}},
    "models_registry.uploadquota": {"max_bytes": 1},
    "usage.alertnotice": {
        "channel": "mail",
        "message": {"owner": "o", "measure": "tokens", "period": "day"},
    },
}


class Filler:
    """Fills tables with rows that differ, and those that they refer to."""

    def __init__(self) -> None:
        self._made: dict[Any, list[Any]] = {}

    def fill(self, model: Any, count: int = NUMBER) -> list[Any]:
        """Make rows of a model, once."""
        if model not in self._made:
            rows = [self._make(model, number) for number in range(count)]
            self._made[model] = model.objects.bulk_create(rows)
        return self._made[model]

    def _make(self, model: Any, number: int) -> Any:
        values = {
            field.name: self._value(field, number)
            for field in model._meta.concrete_fields
            if not (field.has_default() or field.null or field.blank or field.auto_created)
        }
        # Columns that may be empty, but not all of them.
        for name in NEEDED.get(model._meta.label_lower, ()):
            values[name] = self._value(model._meta.get_field(name), number)
        return model(**values | SPECIAL.get(model._meta.label_lower, {}))

    def _value(self, field: Any, number: int) -> Any:
        if field.is_relation:
            is_few = field.related_model._meta.label_lower in FEW
            rows = self.fill(field.related_model, 3 if is_few else NUMBER)
            return rows[number % len(rows)]
        if field.choices:
            return field.choices[number % len(field.choices)][0]
        if isinstance(field, models.DateTimeField):
            return timezone.now() - timedelta(minutes=number)
        if isinstance(field, models.IntegerField | models.FloatField | models.DecimalField):
            return number
        if isinstance(field, models.UUIDField):
            return UUID(int=number)
        if isinstance(field, models.BinaryField):
            return b"{}"
        text = f"row-{number:05}"
        return text[-field.max_length :] if field.max_length else text


@pytest.mark.parametrize("label", LISTS)
def test_a_list_costs_the_same_whatever_is_in_it(
    admin_client: Client, django_assert_max_num_queries: Any, label: str
) -> None:
    model = apps.get_model(label)
    Filler().fill(model)
    url = reverse(f"admin:{label.replace('.', '_')}_changelist")
    for asked in ({}, {"q": "0999"}, {"p": "50"}):
        with django_assert_max_num_queries(MAX_QUERIES):
            page = admin_client.get(url, asked)
        assert page.status_code == 200
        assert len(page.content) < MAX_BYTES


@pytest.mark.parametrize("page", CHOOSING)
def test_a_page_offers_no_thousands(
    admin_client: Client, django_assert_max_num_queries: Any, page: str
) -> None:
    filler = Filler()
    for label in CHOOSING[page]:
        filler.fill(apps.get_model(label))
    with django_assert_max_num_queries(MAX_QUERIES_CHOOSING):
        answer = admin_client.get(f"/admin/{page}/")
    assert answer.status_code == 200
    assert len(answer.content) < MAX_BYTES_CHOOSING


@pytest.mark.parametrize("field", SEARCHED)
def test_a_box_searches_ten_thousand(
    admin_client: Client, django_assert_max_num_queries: Any, field: str
) -> None:
    Filler().fill(apps.get_model(SEARCHED[field]))
    asked = {"app_label": "usage", "model_name": "usagealert", "field_name": field}
    for term in ("", "0999"):
        with django_assert_max_num_queries(MAX_QUERIES):
            answer = admin_client.get(reverse("admin:autocomplete"), asked | {"term": term})
        assert 1 <= len(answer.json()["results"]) <= 20
