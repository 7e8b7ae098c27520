"""The import page: errors beside their fields, and nothing outside the allowed folders."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from kombu.exceptions import OperationalError

from models_registry.admin import import_page
from models_registry.admin.import_form import find_shards
from models_registry.models import Deployment, Model, ModelVersion, VersionState
from models_registry.tasks import finish_import_task

pytestmark = pytest.mark.django_db
URL_NAME = "admin:models_registry_model_import"


@pytest.fixture
def offered(home: Path, tiny_model_path: Path, settings: Any) -> Path:
    """A good model in the import folder."""
    path = Path(settings.IMPORT_DIRS[0]) / "tiny.gguf"
    path.write_bytes(tiny_model_path.read_bytes())
    return path


@pytest.fixture
def run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the control worker's part within the request."""

    def run(arguments: tuple[Any, ...], **_options: Any) -> None:
        finish_import_task(*arguments)

    monkeypatch.setattr(import_page, "finish_import_task", SimpleNamespace(apply_async=run))


def post(client: Client, path: object, **fields: str) -> Any:
    """Send the form."""
    return client.post(reverse(URL_NAME), {"path": str(path), "slug": "tiny", **fields})


@pytest.mark.usefixtures("run_at_once")
def test_import_and_deploy(admin_client: Client, offered: Path) -> None:
    listed = admin_client.get(reverse(URL_NAME))
    assert str(offered) in listed.text
    response = post(admin_client, offered, title="Tiny", deploy="on")
    version = ModelVersion.objects.get()
    assert response.url == reverse("admin:models_registry_modelversion_change", args=[version.pk])
    assert (version.state, version.model.title) == (VersionState.READY, "Tiny")
    assert Deployment.objects.get().model == version.model


@pytest.mark.usefixtures("run_at_once", "quick_probe")
def test_a_relative_path_and_a_second_version(admin_client: Client, offered: Path) -> None:
    post(admin_client, "tiny.gguf")
    post(admin_client, "tiny.gguf", model=str(Model.objects.get().pk), slug="")
    assert [version.number for version in ModelVersion.objects.all()] == [2, 1]
    assert not Deployment.objects.exists()


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../secret.gguf",
        "/dev/zero",
        "nothing.gguf",
        "a\x00.gguf",
        "",
        ".",
        "x" * 300,
        "x" * 5000,
        "loop.gguf",
        "loop/x.gguf",
        "tiny.gguf/x.gguf",
    ],
)
def test_paths_elsewhere_are_refused(admin_client: Client, offered: Path, path: str) -> None:
    (offered.parent.parent / "secret.gguf").write_bytes(offered.read_bytes())
    for name in ("loop", "loop.gguf"):
        (offered.parent / name).symlink_to(name)
    page = post(admin_client, path)
    assert page.status_code == 200
    assert "path" in page.context["form"].errors
    assert not Model.objects.exists()


@pytest.mark.usefixtures("run_at_once", "quick_probe")
def test_a_hard_link_is_stored_without_a_copy(admin_client: Client, offered: Path) -> None:
    post(admin_client, offered, how="link")
    [use] = ModelVersion.objects.get().files.all()
    assert use.file.path.stat().st_ino == offered.stat().st_ino


def test_links_are_refused(admin_client: Client, offered: Path) -> None:
    (offered.parent / "link.gguf").symlink_to(offered)
    assert "link" in str(post(admin_client, "link.gguf").context["form"].errors["path"])


def test_a_bad_file_is_an_error_beside_the_path(admin_client: Client, offered: Path) -> None:
    offered.write_text("version https://git-lfs.github.com/spec/v1\n")
    page = post(admin_client, offered, title="Kept")
    assert page.status_code == 200
    assert "LFS" in str(page.context["form"].errors["path"])
    assert 'value="Kept"' in page.text
    assert not Model.objects.exists()


@pytest.mark.parametrize("slug", ["", "../x", "taken"])
def test_a_bad_name_is_an_error_beside_the_name(
    admin_client: Client, offered: Path, slug: str
) -> None:
    Model.objects.create(slug="taken", title="Taken")
    page = post(admin_client, offered, slug=slug)
    assert "slug" in page.context["form"].errors
    assert Model.objects.count() == 1


def test_without_a_broker_nothing_is_left(
    admin_client: Client, offered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any, **_options: Any) -> None:
        raise OperationalError("refused")

    monkeypatch.setattr(import_page, "finish_import_task", SimpleNamespace(apply_async=fail))
    page = post(admin_client, offered)
    assert page.status_code == 200
    assert "cannot be reached" in str(page.context["form"].non_field_errors())
    assert not Model.objects.exists()


def test_staff_without_the_permission_cannot_import(
    client: Client, django_user_model: Any, home: Path
) -> None:
    user = django_user_model.objects.create_user("bob", password="x", is_staff=True)
    assert client.get(reverse(URL_NAME)).status_code == 302
    client.force_login(user)
    assert client.get(reverse(URL_NAME)).status_code == 403


def test_all_shards_of_a_set_are_found(tmp_path: Path) -> None:
    names = [f"big-0000{number}-of-00002.gguf" for number in (1, 2)]
    for name in names:
        (tmp_path / name).touch()
    assert [path.name for path in find_shards(tmp_path / names[1])] == names
    assert find_shards(tmp_path / "one.gguf") == [tmp_path / "one.gguf"]
