"""What files become: a model, a version, adapters of its deployments; all of a set or nothing."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from llamero.api import async_view
from llamero.api.model_imports import imports
from models_registry.incoming import cleaning
from models_registry.models import (
    Deployment,
    FileRole,
    ImportState,
    Model,
    ModelImport,
    ModelVersion,
    Upload,
    UploadState,
    VersionState,
)
from models_registry.services import importing
from models_registry.services.store import remove_unused_files
from tests.inference.gguf.builder import BOOL, INT32, STRING, UINT16, Draft, Tensor, scalar
from tests.llamero.api.conftest import KEY, LIMITED_KEY
from tests.llamero.api.model_imports.tus_client import TusClient, error_of
from tests.models_registry.factories import make_deployment, make_model, make_version
from tests.tiny_lora import write_lora

pytestmark = pytest.mark.usefixtures("quick_probe")
GOOD = Draft().pack()
IMPORTS = "/v1/model-imports"
PROJECTOR = Draft(
    keys={
        "general.architecture": scalar(STRING, "clip"),
        "general.type": scalar(STRING, "mmproj"),
        "clip.has_vision_encoder": scalar(BOOL, True),
    },
    tensors=(Tensor("v.patch_embd.weight"),),
).pack()


def shard(number: int, of: int = 2, total: int = 3) -> bytes:
    """Make a shard; the first holds what describes the model."""
    split = {
        "split.no": scalar(UINT16, number),
        "split.count": scalar(UINT16, of),
        "split.tensors.count": scalar(INT32, total),
    }
    if number == 0:
        return Draft(keys=Draft().keys | split).pack()
    return Draft(keys=split, tensors=(Tensor(f"blk.{number}.ffn_norm.weight", (32,)),)).pack()


@pytest.fixture
def lora(tmp_path: Path) -> bytes:
    """A LoRA adapter for llama models."""
    write_lora(tmp_path / "lora.gguf", seed=1)
    return (tmp_path / "lora.gguf").read_bytes()


def ask(tus: TusClient, method: str, path: str, body: Any = None) -> Any:
    """Ask about imports, in JSON."""
    raw = b"" if body is None else json.dumps(body).encode()
    return tus.send(method, f"{IMPORTS}{path}", raw, Content_Type="application/json")


def begin(tus: TusClient) -> str:
    """Begin an import, and give its id."""
    return str(ask(tus, "POST", "", {}).json()["id"])


def test_a_file_becomes_a_deployed_model(tus: TusClient, home: Path) -> None:
    name = begin(tus)
    tus.upload(GOOD, import_=name, filename="tiny.gguf")
    answer = ask(tus, "POST", f"/{name}", {"model": "Tiny", "title": "Tiny!", "deploy": True})
    assert (answer.status_code, answer.json()["status"]) == (200, "done")
    version = ModelVersion.objects.get()
    assert (str(version), version.state, version.is_current) == ("tiny v1", "ready", True)
    assert (version.model.title, Deployment.objects.get().slug) == ("Tiny!", "tiny")
    file = version.files.get().file
    assert (file.path.read_bytes(), file.owner) == (GOOD, "key:1")
    assert not list((home / "models" / ".incoming").glob("?" * 48))
    listed = ask(tus, "GET", "").json()["data"]
    assert [(one["id"], one["version"]) for one in listed] == [(name, 1)]


def test_one_request_says_all(tus: TusClient) -> None:
    url = tus.upload(GOOD, filename="tiny.gguf", model="tiny", deploy="true")
    name = tus.look(url)["import"]
    assert ask(tus, "GET", f"/{name}").json()["status"] == "done"
    tus.upload(
        Draft().with_keys(general__name=scalar(STRING, "b")).pack(), model="tiny", new_version="1"
    )
    assert [version.number for version in ModelVersion.objects.all()] == [2, 1]
    refused = tus.create(len(GOOD), model="tiny")
    assert error_of(refused, 400)["param"] == "model"
    assert "exists" in error_of(refused, 400)["message"]


def test_it_waits_for_its_files_once_it_is_wished(tus: TusClient) -> None:
    name = begin(tus)
    assert error_of(ask(tus, "POST", f"/{name}", {"model": "tiny"}), 409)["code"] == (
        "import_not_ready"
    )
    url = tus.create(len(GOOD), import_=name)["Location"]
    assert ask(tus, "POST", f"/{name}", {"model": "tiny"}).json()["status"] == "waiting"
    tus.patch(url, 0, GOOD)
    assert ask(tus, "GET", f"/{name}").json()["status"] == "done"
    assert error_of(tus.create(5, import_=name), 409)["code"] == "wrong_state"
    assert error_of(ask(tus, "POST", f"/{name}", {"model": "b"}), 409)["code"] == "import_not_ready"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_shards_become_one_version(tus: TusClient, order: tuple[int, ...]) -> None:
    name = begin(tus)
    tus.upload(shard(order[0]), import_=name, filename=f"a-{order[0]}.gguf")
    early = error_of(ask(tus, "POST", f"/{name}", {"model": "tiny"}), 409)
    assert f"{order[1] + 1} of 2 missing" in early["message"]
    tus.upload(shard(order[1]), import_=name, filename=f"a-{order[1]}.gguf")
    assert ask(tus, "POST", f"/{name}", {"model": "tiny"}).json()["status"] == "done"
    uses = ModelVersion.objects.get().files.order_by("position")
    assert [use.display_name for use in uses] == ["a-0.gguf", "a-1.gguf"]


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (GOOD, GOOD, "another_model"),
        (GOOD, shard(1), "another_model"),
        (shard(1), shard(1), "duplicate_shard"),
        (shard(1), shard(1, of=3), "another_model"),
        (PROJECTOR, PROJECTOR, "another_projector"),
    ],
)
def test_files_that_do_not_belong_together(
    tus: TusClient, first: bytes, second: bytes, code: str
) -> None:
    name = begin(tus)
    tus.upload(first, import_=name, filename="first.gguf")
    url = tus.create(len(second), import_=name)["Location"]
    error = error_of(tus.patch(url, 0, second), 422)
    assert error["code"] == code
    assert "first.gguf" in error["message"]


def test_adapters_and_a_projector_come_with_their_model(tus: TusClient, lora: bytes) -> None:
    name = begin(tus)
    for file, contents in (("My LoRA.gguf", lora), ("p.gguf", PROJECTOR), ("m.gguf", GOOD)):
        tus.upload(contents, import_=name, filename=file)
    parts = {file["part"] for file in ask(tus, "GET", f"/{name}").json()["files"]}
    assert parts == {"weights", "lora", "mmproj"}
    answer = ask(tus, "POST", f"/{name}", {"model": "tiny", "deploy": True}).json()
    assert answer["status"] == "done", answer["reason"]
    version = ModelVersion.objects.get()
    assert version.files.get(role=FileRole.MMPROJ).display_name == "p.gguf"
    assert [one.name for one in Deployment.objects.get().adapters.all()] == ["my-lora"]
    assert remove_unused_files() == 0


def test_adapters_alone_go_to_the_deployments_of_their_model(tus: TusClient, lora: bytes) -> None:
    name = begin(tus)
    tus.upload(lora, import_=name, filename="polite.gguf")
    assert (
        "adapters alone" in error_of(ask(tus, "POST", f"/{name}", {"model": "x"}), 409)["message"]
    )
    model = make_model()
    make_version(model, facts={"architecture": "llama"})
    wish = {"model": "tiny", "new_version": True}
    assert "no deployment" in error_of(ask(tus, "POST", f"/{name}", wish), 409)["message"]
    make_deployment(model)
    answer = ask(tus, "POST", f"/{name}", wish).json()
    assert (answer["status"], answer["version"]) == ("done", None)
    assert Deployment.objects.get().adapters.get().name == "polite"


def test_an_adapter_of_another_architecture_is_refused(tus: TusClient, tmp_path: Path) -> None:
    write_lora(tmp_path / "other.gguf", seed=1, architecture="qwen2")
    name = begin(tus)
    tus.upload(GOOD, import_=name)
    other = (tmp_path / "other.gguf").read_bytes()
    url = tus.create(len(other), import_=name)["Location"]
    assert error_of(tus.patch(url, 0, other), 422)["code"] == "adapter_mismatch"


def test_a_refused_file_holds_its_import_up_until_it_is_removed(tus: TusClient) -> None:
    name = begin(tus)
    bad = tus.create(len(GOOD), import_=name, filename="bad.gguf")["Location"]
    tus.patch(bad, 0, b"<html>")
    tus.upload(GOOD, import_=name)
    words = error_of(ask(tus, "POST", f"/{name}", {"model": "tiny"}), 409)["message"]
    assert "bad.gguf was refused" in words
    tus.send("DELETE", bad)
    assert ask(tus, "POST", f"/{name}", {"model": "tiny"}).json()["status"] == "done"


def test_a_model_that_does_not_load_fails_its_import(
    tus: TusClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_paths: object) -> None:
        raise importing.GgufRejected("probe_crashed", "It died of SIGSEGV.")

    monkeypatch.setattr(importing, "probe_files", die)
    url = tus.upload(GOOD, model="tiny")
    answer = ask(tus, "GET", f"/{tus.look(url)['import']}").json()
    assert (answer["status"], answer["version_status"]) == ("failed", "rejected")
    assert "SIGSEGV" in answer["reason"]


def test_what_a_crash_stopped_goes_on(tus: TusClient, monkeypatch: pytest.MonkeyPatch) -> None:
    name = begin(tus)
    url = tus.create(len(GOOD), import_=name)["Location"]
    ask(tus, "POST", f"/{name}", {"model": "tiny"})
    # The last byte came, and the gateway was killed before it could say so.
    upload = Upload.objects.get(pk=url.rpartition("/")[2])
    upload.path.write_bytes(GOOD)
    monkeypatch.setattr(cleaning, "STUCK_AFTER", timedelta(seconds=-60))
    checked: list[str] = []
    assert cleaning.resume_stopped(checked.append) == 1
    assert checked == [upload.pk]
    # Then the control worker, in the middle of the import.
    Upload.objects.update(state=UploadState.COMPLETE, found_sha256="ab" * 32)
    version = make_version(make_model(), state=VersionState.PROBING, is_current=False)
    ModelImport.objects.update(state=ImportState.IMPORTING, version=version)
    assert cleaning.resume_stopped(checked.append) == 1
    assert not Model.objects.exists()
    assert ModelImport.objects.get().state == ImportState.WAITING


def test_what_nobody_finishes_is_removed_after_a_day(
    tus: TusClient, home: Path, settings: Settings
) -> None:
    url = tus.create(len(GOOD))["Location"]
    tus.patch(url, 0, GOOD[:100])
    assert cleaning.remove_abandoned() == 0
    settings.UPLOAD_HOURS = -1.0
    assert cleaning.remove_abandoned() == 1
    assert list((home / "models" / ".incoming").iterdir()) == []
    assert tus.send("HEAD", url).status_code == 404


def test_an_import_can_be_taken_back(tus: TusClient, home: Path) -> None:
    name = begin(tus)
    tus.upload(GOOD, import_=name)
    assert ask(tus, "DELETE", f"/{name}").status_code == 204
    assert ask(tus, "GET", f"/{name}").status_code == 404
    assert not Upload.objects.exists()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": 5}, "model"),
        ({"model": "../x"}, "model"),
        ({"model": "a", "new_version": True}, "model"),
        ({"model": "a", "kind": "magic"}, "kind"),
        ({"model": "a", "deploy": "yes"}, "deploy"),
        ({"sources": "x"}, "sources"),
        ({"sources": [5]}, "sources[0]"),
        ({"sources": [{}]}, "sources[0]"),
        ({"sources": [{"url": "https://e.org/a", "repository": "a/b"}]}, "sources[0]"),
        ({"sources": [{"repository": "a/b"}]}, "sources[0].file"),
        ({"sources": [{"url": 5}]}, "sources[0].url"),
        ({"sources": [{"url": "https://e.org/a", "x": "y"}]}, "sources[0].x"),
        ({"sources": [{"url": "https://e.org/a", "sha256": "y"}]}, "sha256"),
        ({"sources": [{"url": "file:///etc/passwd"}]}, "sources"),
    ],
)
def test_bad_wishes(tus: TusClient, body: dict[str, Any], param: str) -> None:
    name = begin(tus)
    tus.create(len(GOOD), import_=name)
    assert error_of(ask(tus, "POST", f"/{name}", body), 400)["param"] == param
    assert error_of(ask(tus, "POST", "", body), 400)["param"] == param
    assert ModelImport.objects.count() == 1


def test_files_that_the_server_fetches(tus: TusClient, work_at_once: list[str]) -> None:
    sources = [{"url": "https://example.org/a.gguf", "sha256": "a" * 64}]
    answer = ask(tus, "POST", "", {"model": "tiny", "sources": sources}).json()
    [file] = answer["files"]
    assert (answer["status"], file["source"], file["bytes"]) == (
        "waiting",
        sources[0]["url"],
        None,
    )
    assert work_at_once == [file["id"]]
    url = f"/v1/model-uploads/{file['id']}"
    assert error_of(tus.patch(url, 0, GOOD), 409)["code"] == "wrong_state"


def test_hubs_are_asked_apart_from_other_requests_and_uploads(
    tus: TusClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[Any] = []
    run = async_view.run_in_thread

    async def note(call: Any, threads: Any = None) -> Any:
        used.append(threads)
        return await run(call, threads)

    monkeypatch.setattr(async_view, "run_in_thread", note)
    ask(tus, "POST", f"/{begin(tus)}", {})
    assert used == [imports.import_threads] * 2


def test_others_see_nothing(tus: TusClient) -> None:
    name = begin(tus)
    other = TusClient(Client(), LIMITED_KEY)
    for method in ("GET", "POST", "DELETE"):
        assert ask(other, method, f"/{name}", {}).status_code == 404
    assert ask(other, "GET", "").json()["data"] == []
    assert error_of(other.create(5, import_=name), 404)["code"] == "import_not_found"
    assert TusClient(Client(), KEY).key == tus.key
