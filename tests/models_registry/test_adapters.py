"""LoRA adapters are checked, stored, listed on a deployment, and reach its replicas."""

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from models_registry.models import Deployment, ModelFile
from models_registry.selectors import estimate_deployment, list_deployment_targets
from models_registry.services.adapters import add_adapter
from models_registry.services.store import Source, remove_unused_files
from tests.models_registry.factories import make_deployment, make_facts, make_model, make_version
from tests.models_registry.test_admin import form_data
from tests.tiny_lora import write_lora

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("home", "quick_probe")]


@pytest.fixture
def deployment() -> Deployment:
    """A llama model's deployment."""
    model = make_model()
    make_version(model, facts=make_facts(architecture="llama"))
    return make_deployment(model)


@pytest.fixture
def lora(tmp_path: Path) -> Path:
    """A random adapter."""
    path = tmp_path / "polite.gguf"
    write_lora(path, seed=1)
    return path


def test_an_added_adapter_reaches_the_replicas(deployment: Deployment, lora: Path) -> None:
    without = estimate_deployment(deployment)
    adapter = add_adapter(deployment=deployment, source=Source(lora), name="polite", scale=0.5)
    (target,) = list_deployment_targets()
    assert (target.generation, target.loras) == (2, (adapter.spec,))
    assert Path(adapter.spec.file).read_bytes() == lora.read_bytes()
    with_adapter = estimate_deployment(Deployment.objects.get())
    assert without is not None
    assert with_adapter is not None
    assert with_adapter.idle_bytes - without.idle_bytes == lora.stat().st_size


def test_adapters_keep_their_order_and_names(deployment: Deployment, lora: Path) -> None:
    for name in ("b", "a"):
        add_adapter(deployment=deployment, source=Source(lora), name=name)
    assert [one.name for one in list_deployment_targets()[0].loras] == ["b", "a"]
    with pytest.raises(ValidationError, match="has an adapter a already: choose another name"):
        add_adapter(deployment=deployment, source=Source(lora), name="a")
    with pytest.raises(ValidationError):
        add_adapter(deployment=deployment, source=Source(lora), name="../a")


def test_a_file_of_an_adapter_is_kept_until_the_last_goes(
    deployment: Deployment, lora: Path
) -> None:
    adapter = add_adapter(deployment=deployment, source=Source(lora), name="polite")
    assert remove_unused_files() == 0
    adapter.delete()
    assert remove_unused_files() == 1
    assert ModelFile.objects.count() == 1


def test_what_is_no_adapter_of_the_model_is_refused(
    deployment: Deployment, tmp_path: Path, tiny_model_path: Path
) -> None:
    other = tmp_path / "other.gguf"
    write_lora(other, seed=1, architecture="qwen2")
    with pytest.raises(ValidationError, match="qwen2"):
        add_adapter(deployment=deployment, source=Source(other), name="x")
    with pytest.raises(ValidationError, match="adapter"):
        add_adapter(deployment=deployment, source=Source(tiny_model_path), name="x")
    assert not deployment.adapters.exists()


def test_the_command_adds_one(deployment: Deployment, lora: Path) -> None:
    call_command("import_adapter", lora, deployment="tiny", name="polite", scale=1.0)
    assert deployment.adapters.get().scale == 1.0
    with pytest.raises(CommandError, match="no deployment"):
        call_command("import_adapter", lora, deployment="none", name="polite")


def test_changing_the_list_replaces_replicas(
    admin_client: Client,
    deployment: Deployment,
    lora: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    adapter = add_adapter(deployment=deployment, source=Source(lora), name="polite")
    url = reverse("admin:models_registry_deployment_change", args=[deployment.pk])
    rows = {
        "adapters-TOTAL_FORMS": 1,
        "adapters-INITIAL_FORMS": 1,
        "adapters-0-id": adapter.pk,
        "adapters-0-deployment": deployment.pk,
        "adapters-0-name": "polite",
        "adapters-0-position": 0,
        "adapters-0-scale": 1.5,
    }
    admin_client.post(url, form_data(admin_client, deployment) | rows)
    deployment.refresh_from_db()
    assert (deployment.adapters.get().scale, deployment.generation) == (1.5, 3)
    with django_capture_on_commit_callbacks(execute=True):
        gone = rows | {"adapters-0-scale": 1.5, "adapters-0-DELETE": "on"}
        admin_client.post(url, form_data(admin_client, deployment) | gone)
    assert not deployment.adapters.exists()
    assert ModelFile.objects.count() == 1
