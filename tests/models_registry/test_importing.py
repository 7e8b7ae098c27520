"""Imports: hash, store once, examine, serve; and leave nothing behind when they fail."""

import hashlib
import os
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from inference.gguf.verdict import GgufRejected
from inference.protocol.replicas import ModelKind
from models_registry.models import Model, ModelFile, ModelVersion, VersionState
from models_registry.services import importing
from models_registry.services.importing import ImportRejected, import_model_files
from models_registry.services.store import remove_unused_files
from tests.models_registry.factories import make_model, make_version

pytestmark = pytest.mark.django_db


def stored_files(home: Path) -> list[Path]:
    """List what lies in the store."""
    found = (home / "models").rglob("*")
    return [path for path in found if path.is_file() and path.name != ".lock"]


def test_an_import_ends_ready_and_current(home: Path, tiny_model_path: Path) -> None:
    version = import_model_files(paths=[tiny_model_path], slug="tiny")
    version.refresh_from_db()
    assert (version.state, version.is_current, version.number) == (VersionState.READY, True, 1)
    assert version.model.kind == ModelKind.CHAT
    assert version.facts["architecture"] == "llama"
    [use] = version.files.all()
    content = tiny_model_path.read_bytes()
    assert use.file.sha256 == hashlib.sha256(content).hexdigest()
    assert use.file.path.read_bytes() == content
    assert stat.S_IMODE(use.file.path.stat().st_mode) == 0o444
    assert use.display_name == tiny_model_path.name


@pytest.mark.usefixtures("quick_probe")
def test_equal_files_are_stored_once_and_freed_with_the_last_user(
    home: Path, tiny_model_path: Path
) -> None:
    first = import_model_files(paths=[tiny_model_path], slug="one")
    import_model_files(paths=[tiny_model_path], slug="two")
    [file] = ModelFile.objects.all()
    assert stored_files(home) == [file.path]
    first.model.delete()
    assert remove_unused_files() == 0
    Model.objects.all().delete()
    assert remove_unused_files() == 1
    assert stored_files(home) == []


@pytest.mark.usefixtures("quick_probe")
def test_a_new_version_replaces_the_current_one(home: Path, tiny_model_path: Path) -> None:
    first = import_model_files(paths=[tiny_model_path], slug="tiny")
    second = import_model_files(paths=[tiny_model_path], slug="tiny", is_new_version=True)
    first.refresh_from_db()
    assert (second.number, second.is_current, first.is_current) == (2, True, False)


@pytest.mark.parametrize("slug", ["", "../x", "a/../b", "%2e%2e", "a\x00", "x" * 129])
def test_bad_names_leave_nothing(home: Path, tiny_model_path: Path, slug: str) -> None:
    with pytest.raises(ValidationError):
        import_model_files(paths=[tiny_model_path], slug=slug)
    assert not Model.objects.exists()


def test_a_name_in_use_is_refused(home: Path, tiny_model_path: Path) -> None:
    Model.objects.create(slug="tiny", title="Tiny")
    with pytest.raises(ValidationError):
        import_model_files(paths=[tiny_model_path], slug="Tiny")
    with pytest.raises(ValidationError):
        import_model_files(paths=[tiny_model_path], slug="other", is_new_version=True)


def test_a_bad_header_leaves_no_row_and_no_file(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.gguf"
    page.write_text("<!doctype html><title>Not found</title>")
    with pytest.raises(ImportRejected, match="web page") as caught:
        import_model_files(paths=[page], slug="page")
    assert caught.value.code == "magic"
    assert not Model.objects.exists()
    assert not (home / "models").exists()


def test_links_are_refused(home: Path, tiny_model_path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(tiny_model_path)
    with pytest.raises(ImportRejected, match="link"):
        import_model_files(paths=[link], slug="tiny")


def test_a_failed_probe_rejects_with_the_reason_and_frees_the_disk(
    home: Path,
    tiny_model_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    def die(paths: object) -> None:
        raise GgufRejected("probe_crashed", "The process that read the file died of SIGSEGV.")

    monkeypatch.setattr(importing, "probe_files", die)
    with (
        django_capture_on_commit_callbacks(execute=True),
        pytest.raises(ImportRejected, match="SIGSEGV"),
    ):
        import_model_files(paths=[tiny_model_path], slug="tiny")
    [version] = ModelVersion.objects.all()
    assert (version.state, version.is_current) == (VersionState.REJECTED, False)
    assert "SIGSEGV" in version.reason
    assert stored_files(home) == []


def test_a_file_that_changes_between_look_and_copy_is_judged_again(
    home: Path, tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(tiny_model_path.read_bytes())
    look = importing.inspect_sources

    def look_then_swap(paths: Any) -> Any:
        summary = look(paths)
        path.write_bytes(b"GGUF" + bytes(100))
        return summary

    monkeypatch.setattr(importing, "inspect_sources", look_then_swap)
    with pytest.raises(ImportRejected) as caught:
        import_model_files(paths=[path], slug="tiny")
    assert caught.value.code == "version"


def test_a_model_of_the_wrong_kind_is_refused(
    home: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.gguf.summary.ENCODERS", {"llama"})
    with pytest.raises(ValidationError) as caught:
        import_model_files(paths=[tiny_model_path], slug="tiny", kind=ModelKind.CHAT)
    assert "kind" in caught.value.message_dict


@pytest.mark.usefixtures("quick_probe")
def test_names_of_files_become_harmless_text(
    home: Path, tiny_model_path: Path, tmp_path: Path
) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\xe2\x80\xaeb.gguf"))
    odd.write_bytes(tiny_model_path.read_bytes())
    version = import_model_files(paths=[odd], slug="tiny")
    [use] = version.files.all()
    assert use.display_name == "a\ufffd\ufffdb.gguf"


@pytest.mark.usefixtures("quick_probe")
def test_our_own_files_are_moved(home: Path, tiny_model_path: Path) -> None:
    ours = home / "ours.gguf"
    ours.write_bytes(tiny_model_path.read_bytes())
    import_model_files(paths=[ours], slug="tiny", are_ours=True)
    assert not ours.exists()
    assert len(stored_files(home)) == 1


def test_old_orphans_are_removed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orphan = home / "models" / "ab" / ("ab" + "0" * 62)
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"x")
    assert remove_unused_files() == 0
    monkeypatch.setattr("models_registry.services.store.ORPHAN_SECONDS", -1)
    assert remove_unused_files() == 1
    assert not orphan.exists()


def test_an_import_that_fell_silent_is_rejected(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = make_version(make_model(), state=VersionState.IMPORTING, is_current=False)
    assert importing.reject_stale_imports() == 0
    monkeypatch.setattr(importing, "STALE_AFTER", timedelta(seconds=-1))
    assert importing.reject_stale_imports() == 1
    version.refresh_from_db()
    assert (version.state, version.files.count()) == (VersionState.REJECTED, 0)


def test_versions_imported_before_sizes_were_kept_are_read_again(
    home: Path, tiny_model_path: Path, quick_probe: None
) -> None:
    version = import_model_files(paths=[tiny_model_path], slug="tiny")
    version.refresh_from_db()
    whole = version.facts
    ModelVersion.objects.update(facts={"architecture": "llama"})
    make_version(make_model("gone"), facts={})
    assert importing.refresh_facts() == 1
    version.refresh_from_db()
    assert version.facts == whole
