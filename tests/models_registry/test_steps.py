"""Buttons that change what is served: confirmed, by POST, for who may, told in the history."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from models_registry.models import Deployment, DeploymentState, Model, ModelVersion
from models_registry.services.versions import make_current
from tests.models_registry.factories import make_deployment, make_model, make_version
from tests.models_registry.test_admin import form_data

pytestmark = pytest.mark.django_db


@pytest.fixture
def demands(settings: Any, monkeypatch: Any) -> list[tuple[list[str], bool]]:
    """What the control plane is told."""
    told: list[tuple[list[str], bool]] = []

    def tell(deployments: Any, *, is_wanted: bool) -> bool:
        told.append((list(deployments), is_wanted))
        return True

    monkeypatch.setattr("llamero.control.demand.note_demand", tell)
    return told


def take(client: Client, thing: Any, step: str, *, is_confirmed: bool = True) -> Any:
    """Take a step."""
    url = reverse(f"admin:models_registry_{thing._meta.model_name}_step", args=[thing.pk, step])
    return client.post(url, {"confirmed": "yes"} if is_confirmed else {}, follow=True)


def test_a_step_is_asked_back_first(admin_client: Client) -> None:
    deployment = make_deployment(make_model(), state=DeploymentState.READY)

    page = take(admin_client, deployment, "unload", is_confirmed=False)

    assert "Requests that run have some seconds to end" in page.text
    assert "Nothing else serves tiny" in page.text
    deployment.refresh_from_db()
    assert deployment.enabled


def test_a_step_is_no_link(admin_client: Client) -> None:
    deployment = make_deployment(make_model(), state=DeploymentState.READY)
    url = reverse("admin:models_registry_deployment_step", args=[deployment.pk, "unload"])

    page = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    assert admin_client.get(url)["Location"] == page
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get())
    assert strict.post(url, {"confirmed": "yes"}).status_code == 403
    deployment.refresh_from_db()
    assert deployment.enabled


def test_a_deployment_goes_through_its_steps(admin_client: Client) -> None:
    deployment = make_deployment(make_model(), state=DeploymentState.READY)

    take(admin_client, deployment, "restart")
    deployment.refresh_from_db()
    assert deployment.generation == 2
    take(admin_client, deployment, "drain")
    deployment.refresh_from_db()
    assert (deployment.enabled, deployment.is_draining) == (True, True)
    take(admin_client, deployment, "load")
    deployment.refresh_from_db()
    assert (deployment.enabled, deployment.is_draining) == (True, False)
    take(admin_client, deployment, "unload")
    deployment.refresh_from_db()
    assert not deployment.enabled

    told = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert [text.partition(":")[0] for text in told] == ["Restart", "Drain", "Load", "Unload"]


def test_one_without_a_minimum_sleeps_and_is_woken(
    admin_client: Client, demands: list[tuple[list[str], bool]]
) -> None:
    deployment = make_deployment(make_model(), state=DeploymentState.READY, min_replicas=0)

    take(admin_client, deployment, "unload")
    Deployment.objects.update(state=DeploymentState.SLEEPING)
    take(admin_client, deployment, "load")

    assert demands == [(["tiny"], False), (["tiny"], True)]
    deployment.refresh_from_db()
    assert deployment.enabled


def test_a_step_that_makes_no_sense_any_more_says_so(admin_client: Client) -> None:
    deployment = make_deployment(make_model(), enabled=False)

    page = take(admin_client, deployment, "restart")

    assert "makes no sense any more" in page.text
    assert take(admin_client, deployment, "no-such-step").status_code == 200


def test_who_may_only_look_takes_no_step(client: Client) -> None:
    deployment = make_deployment(make_model(), state=DeploymentState.READY)
    viewer = User.objects.create_user("vi", is_staff=True)
    names = ("view_deployment", "view_model", "view_modelversion")
    viewer.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(viewer)

    assert take(client, deployment, "unload").status_code == 403
    page = client.get(reverse("admin:models_registry_deployment_change", args=[deployment.pk])).text
    assert "/step/" not in page
    assert (
        client.get(
            reverse("admin:models_registry_model_change", args=[deployment.model_id])
        ).status_code
        == 200
    )


def test_a_version_is_made_current_and_taken_back(admin_client: Client) -> None:
    model = make_model()
    first = make_version(model, is_current=False, facts={"context_length": 2048})
    second = make_version(model, number=2, is_current=False, facts={"context_length": 4096})
    make_deployment(model)
    make_current(version=first)

    asked = take(admin_client, second, "make-current", is_confirmed=False)
    assert "Context trained for: 2,048 becomes 4,096." in asked.text
    assert "tiny will load it" in asked.text
    take(admin_client, second, "make-current")
    assert ModelVersion.objects.get(is_current=True) == second

    asked = take(admin_client, model, "roll-back", is_confirmed=False)
    assert "tiny v1 will be served instead of v2" in asked.text
    take(admin_client, model, "roll-back")
    assert ModelVersion.objects.get(is_current=True) == first


def test_without_an_earlier_version_there_is_no_way_back(admin_client: Client) -> None:
    model = make_model()
    make_current(version=make_version(model, is_current=False))

    assert "makes no sense any more" in take(admin_client, model, "roll-back").text


@pytest.mark.parametrize("text", ["999999", "x", "0"])
def test_what_is_not_there_is_404(admin_client: Client, text: str) -> None:
    url = reverse("admin:models_registry_deployment_step", args=[text, "load"])
    assert admin_client.post(url).status_code == 404


def test_a_fallback_must_be_of_the_kind(admin_client: Client) -> None:
    chat, vectors = make_model(), make_model("vectors", kind="embedding")
    chat.fallback = vectors
    with pytest.raises(Exception, match="its answers would not do"):
        chat.full_clean()
    chat.fallback = chat
    with pytest.raises(Exception, match="stand in for itself"):
        chat.full_clean()
    chat.fallback = make_model("other", kind="completion")
    chat.full_clean()
    assert Model.objects.count() == 3


def test_who_deletes_a_deployment_is_told_what_clients_get(admin_client: Client) -> None:
    deployment = make_deployment(make_model(), state=DeploymentState.READY)
    url = reverse("admin:models_registry_deployment_delete", args=[deployment.pk])
    assert "requests for it get 404 (model_not_found)" in admin_client.get(url).text
    make_deployment(deployment.model, slug="another")
    assert "Requests for the model tiny go to another" in admin_client.get(url).text
    listed = reverse("admin:models_registry_deployment_changelist")
    chosen = {"action": "delete_selected", "_selected_action": [deployment.pk]}
    assert "without another deployment get 404" in admin_client.post(listed, chosen).text


def test_saving_tells_that_replicas_are_replaced(admin_client: Client) -> None:
    deployment = make_deployment(make_model(), state=DeploymentState.READY)
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    words = "Replicas are being replaced one by one: slots changed."
    values = form_data(admin_client, deployment, num_slots=deployment.num_slots + 1)
    assert words in admin_client.post(url, values, follow=True).text
    values = form_data(admin_client, deployment, max_queue=7, share=2)
    assert "Replicas are being replaced one by one: queue changed." in (
        admin_client.post(url, values, follow=True).text
    )
