"""The deployment page tells where it fits before anything is saved, and refuses the impossible."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from models_registry.models import Deployment
from models_registry.rooms import Room
from tests.models_registry.factories import make_deployment, make_facts, make_model, make_version
from tests.models_registry.test_admin import form_data

pytestmark = pytest.mark.django_db
PANEL = "/admin/models_registry/deployment/panel/?panel=memory"
MIB = 1 << 20


@pytest.fixture
def deployment() -> Deployment:
    """Four contexts of 1024 tokens, 16 MiB each."""
    model = make_model()
    make_version(model, facts=make_facts(width=4096))
    return make_deployment(model, context_length=1024, num_slots=4)


def judge(client: Client, deployment: Deployment, **changes: Any) -> str:
    """Ask for the panel with changed values."""
    values = form_data(client, deployment, **changes) | {"deployment": deployment.pk}
    answer = client.post(PANEL, values)
    assert answer.status_code == 200
    return answer.text


def test_the_panel_follows_the_values_of_the_form(
    admin_client: Client, deployment: Deployment
) -> None:
    assert "Contexts of all slots: 64.0" in judge(admin_client, deployment)
    assert "Contexts of all slots: 128.0" in judge(admin_client, deployment, num_slots=8)
    deployment.refresh_from_db()
    assert deployment.num_slots == 4


def test_a_bad_value_leaves_the_saved_one(admin_client: Client, deployment: Deployment) -> None:
    assert "Contexts of all slots: 64.0" in judge(admin_client, deployment, num_slots="x")


def test_shares_that_are_none_leave_the_panel(admin_client: Client, deployment: Deployment) -> None:
    for shares in ("a,b", "-1,2"):
        panel = judge(admin_client, deployment, tensor_split=shares, num_slots=8)
        assert "Contexts of all slots: 128.0" in panel


def test_the_panel_judges_each_node(
    admin_client: Client, deployment: Deployment, rooms: list[Room]
) -> None:
    assert "No node is running" in judge(admin_client, deployment)
    rooms += [
        Room("roomy", 1000 * MIB, 2000 * MIB),
        Room("busy", 10 * MIB, 2000 * MIB),
        Room("tiny", 10 * MIB, 20 * MIB),
    ]
    panel = judge(admin_client, deployment)
    for words in ("has room", "is full: busy has", "is too small: tiny has"):
        assert words in panel


def test_a_new_form_has_a_panel_too(admin_client: Client, deployment: Deployment) -> None:
    url = reverse("admin:models_registry_deployment_add")
    assert "data-panel-url" in admin_client.get(url).text
    page = admin_client.post(
        PANEL,
        {"model": deployment.model_id, "context_length": 1024, "num_slots": 1},
    )
    assert "when every slot is full" in page.text


def test_only_staff_may_ask(client: Client) -> None:
    answer = client.post(PANEL, {})
    assert answer.status_code == 302


def test_what_no_node_could_hold_is_refused_unless_asked_for(
    admin_client: Client, deployment: Deployment, rooms: list[Room]
) -> None:
    rooms.append(Room("small", 300 * MIB, 400 * MIB))
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    page = admin_client.post(url, form_data(admin_client, deployment, context_length=65536))
    assert "No node could hold this" in page.text
    admin_client.post(
        url, form_data(admin_client, deployment, context_length=65536, ignores_memory="on")
    )
    deployment.refresh_from_db()
    assert (deployment.context_length, deployment.ignores_memory) == (65536, True)


def test_a_list_takes_few_queries(admin_client: Client, django_assert_max_num_queries: Any) -> None:
    for slug in ("a", "b", "c", "d", "e"):
        model = make_model(slug)
        make_version(model, facts=make_facts(), sha256=slug * 64)
        make_deployment(model)
    with django_assert_max_num_queries(9):
        admin_client.get(reverse("admin:models_registry_deployment_changelist"))


def test_converted_weights_are_told(admin_client: Client) -> None:
    model = make_model()
    make_version(model, facts=make_facts(width=4096) | {"quantization": "Q4_1"})
    deployment = make_deployment(model, context_length=1024, weight_type="q8_0")
    words = "Served as q8_0, converted for speed; the file is Q4_1."
    assert words in judge(admin_client, deployment)
    assert words not in judge(admin_client, deployment, weight_type="")
    page = admin_client.get(reverse("admin:models_registry_model_change", args=[model.pk]))
    assert words in page.text
