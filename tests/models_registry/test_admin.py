"""The registry's admin pages open, show states with reasons, and act."""

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from models_registry.models import (
    Deployment,
    DeploymentState,
    Model,
    ModelFile,
    ModelVersion,
    VersionState,
)
from tests.models_registry.factories import make_deployment, make_facts, make_model, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> None:
    """Keep deletions away from the files of other tests."""


def post_action(client: Client, model: str, action: str, *pks: int) -> Any:
    """Run a bulk action on rows."""
    url = reverse(f"admin:models_registry_{model}_changelist")
    return client.post(url, {"action": action, "_selected_action": pks}, follow=True)


@pytest.mark.parametrize("name", ["model", "modelversion", "modelfile", "deployment"])
def test_lists_and_details_open(admin_client: Client, name: str) -> None:
    model = make_model()
    make_version(model, facts={"architecture": "llama", "num_params": 1234567})
    make_deployment(model)
    row = apps.get_model("models_registry", name)._default_manager.get()
    listed = admin_client.get(reverse(f"admin:models_registry_{name}_changelist"))
    opened = admin_client.get(reverse(f"admin:models_registry_{name}_change", args=[row.pk]))
    assert (listed.status_code, opened.status_code) == (200, 200)


@pytest.mark.parametrize("name", ["auth_user", "auth_group"])
def test_people_and_groups_open(admin_client: Client, name: str) -> None:
    for page in ("changelist", "add"):
        assert admin_client.get(reverse(f"admin:{name}_{page}")).status_code == 200


def test_facts_and_reasons_are_shown(admin_client: Client) -> None:
    model = make_model()
    version = make_version(model, facts={"num_params": 1234567}, sha256="c" * 64)
    make_deployment(model, state=DeploymentState.FAILED, reason="Not enough memory: <b>")
    page = admin_client.get(reverse("admin:models_registry_modelversion_change", args=[version.pk]))
    assert "1,234,567" in page.text
    assert "c" * 64 in page.text
    page = admin_client.get(reverse("admin:models_registry_deployment_changelist"))
    assert "Not enough memory: &lt;b&gt;" in page.text
    assert "Failed" in page.text
    url = reverse("admin:models_registry_deployment_change", args=[model.deployments.get().pk])
    assert "('failed'" not in admin_client.get(url).text


def test_the_memory_of_a_replica_is_estimated(admin_client: Client) -> None:
    model = make_model()
    make_version(model, facts=make_facts(width=8))
    deployment = make_deployment(model, context_length=1024, num_slots=4)
    listed = admin_client.get(reverse("admin:models_registry_deployment_changelist"))
    assert "up to" in listed.text
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    page = admin_client.get(url).text
    assert "when every slot is full" in page
    assert "Contexts of all slots: 128.0" in page


def test_a_page_of_an_import_under_way_renews_itself(admin_client: Client) -> None:
    version = make_version(make_model(), state=VersionState.PROBING, is_current=False)
    url = reverse("admin:models_registry_modelversion_change", args=[version.pk])
    assert "Refresh" in admin_client.get(url)
    ModelVersion.objects.update(state=VersionState.READY)
    assert "Refresh" not in admin_client.get(url)


def test_an_odd_address_is_no_error_page(admin_client: Client) -> None:
    url = reverse("admin:models_registry_modelversion_change", args=["x"])
    assert admin_client.get(url).status_code == 302


def test_bulk_actions_switch_and_restart(admin_client: Client) -> None:
    deployment = make_deployment(make_model())
    post_action(admin_client, "deployment", "disable", deployment.pk)
    post_action(admin_client, "deployment", "restart", deployment.pk)
    deployment.refresh_from_db()
    assert (deployment.enabled, deployment.generation) == (False, 2)
    post_action(admin_client, "deployment", "enable", deployment.pk)
    deployment.refresh_from_db()
    assert deployment.enabled


def test_choosing_a_version_to_serve(admin_client: Client) -> None:
    model = make_model()
    make_version(model)
    second = make_version(model, number=2, is_current=False)
    post_action(admin_client, "modelversion", "make_current", second.pk)
    second.refresh_from_db()
    assert second.is_current


def form_data(client: Client, deployment: Deployment, **changes: Any) -> dict[str, Any]:
    """Give what the change form would send, with changes."""
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    form = client.get(url).context["adminform"].form
    data = {name: form[name].value() for name in form.fields}
    sent = {name: value for name, value in data.items() if value is not None and value is not False}
    return sent | {"adapters-TOTAL_FORMS": 0, "adapters-INITIAL_FORMS": 0} | changes


def test_a_changed_profile_replaces_replicas(admin_client: Client) -> None:
    model = make_model()
    make_version(model)
    deployment = make_deployment(model)
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    admin_client.post(url, form_data(admin_client, deployment, max_replicas=2))
    deployment.refresh_from_db()
    assert (deployment.max_replicas, deployment.generation) == (2, 1)
    admin_client.post(url, form_data(admin_client, deployment, num_slots=4))
    deployment.refresh_from_db()
    assert (deployment.num_slots, deployment.generation) == (4, 2)
    button = "models_registry_deployment_save_and_restart"
    admin_client.post(url, form_data(admin_client, deployment, **{button: "1"}))
    deployment.refresh_from_db()
    assert deployment.generation == 3


@pytest.mark.parametrize("value", ["0", "-1", "1000000000", "", "x"])
def test_bad_numbers_are_field_errors(admin_client: Client, value: str) -> None:
    deployment = make_deployment(make_model())
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    page = admin_client.post(url, form_data(admin_client, deployment, context_length=value))
    assert page.status_code == 200
    assert "context_length" in page.context["adminform"].form.errors


def test_a_topic_with_an_error_is_not_folded_up(admin_client: Client) -> None:
    deployment = make_deployment(make_model())
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    bad = {"prefill_chunk": 0, "tensor_split": "a,b", "pooling": "rank"}
    page = admin_client.post(url, form_data(admin_client, deployment, **bad))
    shown = page.context["adminform"]
    assert set(shown.form.errors) == set(bad)
    unfolded = [one.name for one in shown if one.name and not one.is_collapsible]
    assert unfolded == ["Speed", "Embeddings and reranking", "Machine"]


def test_a_new_deployment_is_offered_fitting_values(admin_client: Client) -> None:
    model = make_model()
    make_version(model, facts={"context_length": 2048})
    url = reverse("admin:models_registry_deployment_add")
    form = admin_client.get(url, {"model": model.pk}).context["adminform"].form
    assert (form.initial["context_length"], form.initial["slug"]) == (2048, "tiny")
    assert admin_client.get(url, {"model": "x"}).status_code == 200


def test_bulk_deletion_frees_the_files(
    admin_client: Client, django_capture_on_commit_callbacks: Any
) -> None:
    model = make_model()
    version = make_version(model)
    make_deployment(model, pinned_version=version)
    with django_capture_on_commit_callbacks(execute=True):
        url = reverse("admin:models_registry_model_changelist")
        data = {"action": "delete_selected", "_selected_action": [model.pk], "post": "yes"}
        admin_client.post(url, data)
    assert not Model.objects.exists()
    assert not ModelFile.objects.exists()


def test_a_pinned_version_is_not_deleted_by_a_500(admin_client: Client) -> None:
    model = make_model()
    version = make_version(model)
    make_deployment(model, pinned_version=version)
    url = reverse("admin:models_registry_modelversion_delete", args=[version.pk])
    page = admin_client.post(url, {"post": "yes"})
    assert page.status_code in (200, 403)
    assert ModelVersion.objects.exists()
