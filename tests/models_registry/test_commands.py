"""The operator's commands say what they did, and exit as documented."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from models_registry.demo.models import DemoModel
from models_registry.management.commands import fetch_demo_models
from models_registry.models import Deployment, Model
from tests.inference.gguf.builder import Draft
from tests.tiny_lora import write_lora


def inspect(*paths: Path) -> tuple[int, dict[str, object]]:
    """Run inspect_gguf; give its exit status and its JSON."""
    output = io.StringIO()
    try:
        call_command("inspect_gguf", *map(str, paths), "--json", stdout=output)
    except SystemExit as error:
        return int(str(error.code)), json.loads(output.getvalue())
    return 0, json.loads(output.getvalue())


def test_inspection_of_a_good_file(tiny_model_path: Path) -> None:
    status, answer = inspect(tiny_model_path)
    assert (status, answer["verdict"], answer["architecture"]) == (0, "ok", "llama")


def test_inspection_of_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF\x04\x00\x00\x00" + bytes(16))
    status, answer = inspect(path)
    assert (status, answer["verdict"], answer["code"]) == (1, "rejected", "version")
    assert answer["byte_offset"] == 4


@pytest.mark.django_db
def test_import_and_deploy(home: Path, tiny_model_path: Path) -> None:
    call_command("import_model", tiny_model_path, slug="tiny", deploy=True, stdout=io.StringIO())
    assert Deployment.objects.get().model.slug == "tiny"
    with pytest.raises(CommandError, match=r"tiny already exists: .* --slug, .* --new-version"):
        call_command("import_model", tiny_model_path, slug="Tiny", stdout=io.StringIO())


@pytest.mark.django_db
def test_an_import_says_what_to_give_instead(home: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"Cannot open 'nope\.gguf': No such file"):
        call_command("import_model", tmp_path / "nope.gguf", slug="tiny")
    with pytest.raises(CommandError, match="There is no model tiny: --new-version is for"):
        call_command("import_model", tmp_path / "nope.gguf", slug="tiny", new_version=True)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tiny.gguf", "--slug", "../x"], "--slug: Use lower-case letters"),
        (["tiny.gguf", "--slug", "x", "--title", "y" * 300], "--title: Ensure this value has at"),
        (["ftp://example.org/x", "--slug", "x"], "must begin with https:// or http://"),
        (["https://localhost/x", "--slug", "../x"], "--slug: Use lower-case letters"),
        (["hf://owner", "--slug", "x"], "name a file of the repository"),
        ([".", "--slug", "x"], "not a regular file"),
        (["tiny.gguf", "tiny.gguf", "--slug", "x"], "Shard|shard|several|more than"),
    ],
)
def test_bad_options_are_told_by_name(
    home: Path, tmp_path: Path, arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Draft().write(tmp_path, "tiny.gguf")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=words):
        call_command("import_model", *arguments)
    assert not Model.objects.exists()


@pytest.mark.parametrize("scale", ["nan", "inf", "much"])
def test_a_scale_is_a_number(scale: str) -> None:
    options = ["--deployment", "x", "--name", "x", "--scale", scale]
    with pytest.raises(CommandError, match=r"--scale: .* is no number"):
        call_command("import_adapter", "x", *options)


def test_inspection_of_an_adapter_names_its_command(tmp_path: Path) -> None:
    write_lora(tmp_path / "lora.gguf", seed=1)
    _, answer = inspect(tmp_path / "lora.gguf")
    assert "import_adapter" in str(answer["reason"])


@pytest.mark.django_db
def test_demo_models_are_provided_once(
    home: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[Path] = []

    def fetch(folder: Path) -> Path:
        target = folder / "tiny.gguf"
        target.write_bytes(tiny_model_path.read_bytes())
        fetched.append(target)
        return target

    demo = DemoModel("tiny", "Tiny", "", "tests", fetch)
    monkeypatch.setattr(fetch_demo_models, "DEMO_MODELS", [demo])
    for _ in range(2):
        call_command("fetch_demo_models", stdout=io.StringIO())
    assert len(fetched) == 1
    assert not fetched[0].exists()
    Deployment.objects.all().delete()
    call_command("fetch_demo_models", stdout=io.StringIO())
    assert (Model.objects.count(), Deployment.objects.count(), len(fetched)) == (1, 1, 1)
