"""The home page shows what matters of many deployments, at the cost of few."""

from typing import Any

import pytest
from django.test import Client

from llamero.console import overview
from llamero.console.live import Live
from llamero.console.overview import MAX_ROWS, read_overview
from models_registry.models import Deployment, DeploymentState
from tests.models_registry.factories import make_model

pytestmark = pytest.mark.django_db


def test_the_troubled_come_first_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any, staff_browser: Client
) -> None:
    monkeypatch.setattr(overview, "read_live", Live)
    model = make_model()
    Deployment.objects.bulk_create(
        Deployment(model=model, slug=f"d{number:03}", state=DeploymentState.READY)
        for number in range(MAX_ROWS + 10)
    )
    Deployment.objects.filter(slug="d049").update(state=DeploymentState.FAILED)

    with django_assert_num_queries(2):
        shown = read_overview()

    assert (shown.rows[0].name, len(shown.rows), shown.num_more) == ("d049", MAX_ROWS, 10)
    assert "10 more deployments" in staff_browser.get("/overview").content.decode()


def test_numbers_do_not_change_the_shape_but_states_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "read_live", Live)
    deployment = Deployment.objects.create(model=make_model(), slug="a")
    before = read_overview()
    assert read_overview().shape == before.shape
    assert before.values["row.a.replicas"] == "0"

    Deployment.objects.filter(pk=deployment.pk).update(state=DeploymentState.READY)

    assert read_overview().shape != before.shape
