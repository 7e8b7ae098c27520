"""A file says what there should be: told first, done once, and every mistake has its place."""

import io
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from inference.gguf.summary import ModelSummary
from llamero.accounts.models import ApiKey
from llamero.apply import outlook
from models_registry.models import Deployment, Model, ModelAlias, ModelVersion
from tests.inference.gguf.builder import STRING, Draft, scalar
from tests.inference.gguf.judging import judge
from tests.models_registry.conftest import inspect_here, quick_inspection, quick_probe

__all__ = ["quick_inspection", "quick_probe"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_probe", "quick_inspection")]
GOOD = """
models:
  - id: tiny
    title: Tiny
    description: A small one.
    aliases: [wee]
    files:
      - path: tiny.gguf
    deployments:
      - name: tiny
        num_slots: 2
        context_length: 128
keys:
  - name: ci
    user: ada
    scopes: [inference, models]
    models: [tiny]
    ips: [10.0.0.0/8]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model beside the file, and a user; headers are read in this process."""
    monkeypatch.setattr(outlook, "inspect_file", inspect_here)
    monkeypatch.setattr(outlook, "inspect_files", inspect_all_here)
    settings.HOME = tmp_path / "home"
    settings.DISK_RESERVE_BYTES = 0
    User.objects.create_user("ada")
    Draft().write(tmp_path, "tiny.gguf")
    return tmp_path


def inspect_all_here(paths: Sequence[Path]) -> ModelSummary:
    """Inspect files in this process."""
    return judge(*(path.read_bytes() for path in paths))


def apply(folder: Path, text: str, **options: Any) -> str:
    """Apply a text; gives what was printed."""
    (folder / "models.yaml").write_text(text)
    output = io.StringIO()
    call_command("apply", folder / "models.yaml", stdout=output, **options)
    return output.getvalue()


def test_everything_is_made_once(folder: Path) -> None:
    planned = apply(folder, GOOD, dry_run=True)
    assert planned.splitlines() == [
        "would add the model tiny: tiny.gguf",
        "would describe tiny: description",
        "would deploy tiny as tiny",
        "would call tiny wee as well",
        "would issue the key ci of ada",
    ]
    assert not Model.objects.exists()
    printed = apply(folder, GOOD)
    text = printed.partition("the key ci: ")[2].strip()
    assert text.startswith("llm_")
    model = Model.objects.get()
    assert (model.title, model.description) == ("Tiny", "A small one.")
    assert ModelVersion.objects.get().is_current
    assert ModelAlias.objects.get().name == "wee"
    assert Deployment.objects.get().num_slots == 2
    key = ApiKey.objects.get()
    assert (key.scopes, key.networks) == (["inference", "models"], ["10.0.0.0/8"])
    assert list(key.allowed_models.all()) == [model]
    assert apply(folder, GOOD) == "everything is as the file says\n"


def test_changes_are_told_and_made(folder: Path) -> None:
    apply(folder, GOOD)
    changed = (
        GOOD.replace("num_slots: 2", "num_slots: 4")
        .replace("title: Tiny", "title: Wee")
        .replace("[wee]", "[small]")
        .replace("[inference, models]", "[inference]")
    )
    assert apply(folder, changed).splitlines() == [
        "call tiny wee no more",
        "change tiny: title 'Tiny' -> 'Wee'",
        "change the deployment tiny: num_slots 2 -> 4",
        "call tiny small as well",
        "change the key ci of ada: scopes ['inference', 'models'] -> ['inference']",
    ]
    deployment = Deployment.objects.get()
    assert (deployment.num_slots, deployment.generation) == (4, 2)
    assert apply(folder, changed) == "everything is as the file says\n"


def test_defaults_of_requests_are_settings_of_a_deployment(folder: Path) -> None:
    apply(folder, GOOD)
    steady = GOOD.replace("num_slots: 2", "default_seed: 42\n        default_temperature: 0")
    planned = apply(folder, steady, dry_run=True)
    assert "default_seed None -> 42, default_temperature None -> 0" in planned
    apply(folder, steady)
    deployment = Deployment.objects.get()
    assert deployment.request_defaults == {"seed": 42, "temperature": 0.0}
    assert deployment.generation == 1
    apply(folder, GOOD.replace("num_slots: 2", "default_seed: null"))
    assert Deployment.objects.get().request_defaults == {"temperature": 0.0}
    for value in (".nan", "3"):
        with pytest.raises(CommandError, match=r"deployments\[0\].default_temperature"):
            apply(folder, GOOD.replace("num_slots: 2", f"default_temperature: {value}"))


def test_files_decide_about_versions(folder: Path) -> None:
    apply(folder, GOOD)
    Draft().with_keys(general__name=scalar(STRING, "b")).write(folder, "new.gguf")
    newer = GOOD.replace("tiny.gguf", "new.gguf")
    assert apply(folder, newer) == "add a version to tiny: new.gguf\n"
    # Back again: the old version is still here.
    assert apply(folder, GOOD) == "serve tiny v1 of tiny\n"
    assert [one.is_current for one in ModelVersion.objects.order_by("number")] == [True, False]


def test_texts_of_keys_go_into_a_private_file(folder: Path) -> None:
    printed = apply(folder, GOOD, keys_file=folder / "keys")
    assert "llm_" not in printed
    assert (folder / "keys").read_text().startswith("ci: llm_")
    assert stat.S_IMODE((folder / "keys").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("id: tiny\n", "id: ../tiny\n", "models[0].id: "),
        (
            "id: tiny\n    title: Tiny",
            "title: Tiny",
            "models[0].id: is missing",
        ),
        (
            "title: Tiny",
            "title: 5",
            "models[0].title: must be a text, and is a whole number: write it in quotes",
        ),
        ("title: Tiny", "kind: magic", "models[0].kind: There is no kind 'magic'"),
        (
            "title: Tiny",
            "tittle: Tiny",
            "models[0].tittle: is no field of this entry; did you mean title?",
        ),
        ("path: tiny.gguf", "path: none.gguf", "models[0].files[0].path: Cannot open"),
        ("path: tiny.gguf", "file: a.gguf", "models[0].files[0]: must have one of"),
        ("path: tiny.gguf", "url: https://e.org/a", "models[0].files[0].sha256: is missing"),
        (
            "path: tiny.gguf",
            f"path: tiny.gguf\n        sha256: {'a' * 64}",
            "models[0].files[0].path: has the SHA-256",
        ),
        ("[wee]", "[wee, ../x]", "models[0].aliases[1]: "),
        ("name: tiny\n        num_slots", "num_slots", "models[0].deployments[0].name: is missing"),
        ("num_slots: 2", "num_slots: 0", "models[0].deployments[0].num_slots: Ensure"),
        (
            "num_slots: 2",
            "num_slots: true",
            "models[0].deployments[0].num_slots: must be a whole number",
        ),
        ("num_slots: 2", "num_slots: many", "models[0].deployments[0].num_slots: "),
        ("num_slots: 2", "enabled: 1", "models[0].deployments[0].enabled: must be true or false"),
        ("num_slots: 2", "slots: 2", "models[0].deployments[0].slots: is no setting"),
        ("user: ada", "user: bob", "keys[0].user: there is no user bob"),
        ("user: ada", "team: x", "keys[0].team: there is no team x"),
        ("user: ada", "enabled: true", "keys[0].user: is missing"),
        ("[inference, models]", "[everything]", "keys[0].scopes[0]: there is no scope everything"),
        ("models: [tiny]", "models: [big]", "keys[0].models[0]: there is no model big"),
        ("10.0.0.0/8", "10.0.0.1/8", "keys[0].ips: "),
        ("ips: [10.0.0.0/8]", "priority: top", "keys[0].priority: there is no priority top; there"),
        ("keys:", "locks:", "locks: is no field of this entry; there are keys, models"),
        ("user: ada", "user: ada\n    user: eve", "is no YAML: "),
        ("user: ada", "user: !!python/object:os.system x", "is no YAML: "),
        (
            "user: ada",
            "secret: llm_x",
            "keys[0].secret: is no field of this entry; there are enabled,",
        ),
    ],
)
def test_a_mistake_has_its_place_and_changes_nothing(
    folder: Path, before: str, after: str, place: str
) -> None:
    assert before in GOOD
    with pytest.raises(CommandError) as caught:
        apply(folder, GOOD.replace(before, after))
    assert f"models.yaml: {place}" in str(caught.value)
    assert not Model.objects.exists()
    assert not ApiKey.objects.exists()


def test_a_bad_file_is_told_with_its_place(folder: Path) -> None:
    (folder / "tiny.gguf").write_bytes(b"<html>")
    with pytest.raises(CommandError, match=r"models\[0\]\.files: .*web page"):
        apply(folder, GOOD, dry_run=True)
    assert not Model.objects.exists()
