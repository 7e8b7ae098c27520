"""Model files are checked against their registered hash, once per host."""

import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from inference.protocol.errors import EngineError
from inference.protocol.replicas import LoraAdapter, ModelKind, ReplicaSpec
from inference.worker import model_files
from inference.worker.model_files import verify_files


def make_spec(path: Path | str, sha256: str) -> ReplicaSpec:
    return ReplicaSpec(
        replica="r", deployment="d", model="m", kind=ModelKind.CHAT,
        files=(str(path),), sha256=(sha256,),
    )  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF data")
    return path


@pytest.fixture
def sha256(model: Path) -> str:
    return hashlib.sha256(model.read_bytes()).hexdigest()


def test_a_checked_file_is_not_read_again(
    model: Path, sha256: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_files(make_spec(model, sha256), tmp_path)
    monkeypatch.delattr(model_files, "_hash_file")
    verify_files(make_spec(model, sha256), tmp_path)


def test_a_changed_file_is_refused(model: Path, sha256: str, tmp_path: Path) -> None:
    verify_files(make_spec(model, sha256), tmp_path)
    model.write_bytes(b"GGUF evil")
    os.utime(model, (1, 1))
    with pytest.raises(EngineError, match="SHA-256 differs"):
        verify_files(make_spec(model, sha256), tmp_path)


def test_a_missing_file_is_named_without_its_folder(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        verify_files(make_spec(tmp_path / "gone.gguf", "0" * 64), tmp_path)
    assert "gone.gguf cannot be read" in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_a_home_that_cannot_be_written_costs_only_time(model: Path, sha256: str) -> None:
    verify_files(make_spec(model, sha256), model)


def test_a_fake_model_has_no_file(tmp_path: Path) -> None:
    verify_files(make_spec("fake:", ""), tmp_path)


def test_drafts_and_adapters_are_checked_too(model: Path, sha256: str, tmp_path: Path) -> None:
    spec = make_spec(model, sha256)
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF other")
    adapter = LoraAdapter(name="polite", file=str(other), sha256="0" * 64)
    with_draft = msgspec.structs.replace(spec, draft_files=(str(other),), draft_sha256=("0" * 64,))
    for bad in (with_draft, msgspec.structs.replace(spec, loras=(adapter,))):
        with pytest.raises(EngineError, match=r"other\.gguf is not the registered file"):
            verify_files(bad, tmp_path)
