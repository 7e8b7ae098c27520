"""The home page shows what matters of many deployments, at the cost of few."""

from typing import Any

import pytest
from django.test import Client

from inference.protocol.nodes import NodeStatus
from inference.protocol.replicas import ReplicaState, ReplicaStatus
from llamero.console import overview
from llamero.console.live import Live
from llamero.console.overview import MAX_ROWS, read_overview
from llamero.control.models import Node, Scheduling
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


def test_a_node_tells_what_an_admin_said_of_it(
    monkeypatch: pytest.MonkeyPatch, staff_browser: Client
) -> None:
    Deployment.objects.create(model=make_model(), slug="a", state=DeploymentState.READY)
    replica = ReplicaStatus(replica="a-0", deployment="a", node="n", state=ReplicaState.READY)
    live = Live(statuses=(replica,), nodes=(NodeStatus(node="n"), NodeStatus(node="o")))
    monkeypatch.setattr(overview, "read_live", lambda: live)
    Node.objects.create(name="n")
    before = read_overview()
    assert [node.limit for node in before.nodes] == ["", ""]

    Node.objects.update(scheduling=Scheduling.DRAINING)

    after = read_overview()
    assert [(node.limit, node.deployments) for node in after.nodes] == [
        ("Draining", ("a",)),
        ("", ()),
    ]
    assert after.shape != before.shape
    assert "Draining" in staff_browser.get("/overview").content.decode()


def test_numbers_do_not_change_the_shape_but_states_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "read_live", Live)
    deployment = Deployment.objects.create(model=make_model(), slug="a")
    before = read_overview()
    assert read_overview().shape == before.shape
    assert before.values["row.a.replicas"] == "0"

    Deployment.objects.filter(pk=deployment.pk).update(state=DeploymentState.READY)

    assert read_overview().shape != before.shape
