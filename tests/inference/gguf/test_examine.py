"""Files on disk are examined in processes of their own, which may die without harm."""

import os
import signal
from pathlib import Path

import pytest

from inference.gguf import child
from inference.gguf.child import INSPECTION, Stage, run_stage
from inference.gguf.examine import inspect_files, probe_files
from inference.gguf.verdict import GgufRejected
from inference.protocol.replicas import ModelKind
from tests.inference.gguf.builder import Draft


def test_a_tiny_model_is_inspected_and_probed(tiny_model_path: Path) -> None:
    summary = inspect_files([tiny_model_path])
    probe_files([tiny_model_path])
    assert summary.kind is ModelKind.CHAT
    assert summary.quantization == "F32"
    layers = summary.memory.layers
    assert [(layer.k_elements, layer.v_elements) for layer in layers] == [(32, 32)] * 2
    assert summary.memory.weights_bytes < summary.size_bytes < summary.memory.weights_bytes * 1.1


@pytest.mark.model
def test_a_real_chat_model(smollm2_path: Path) -> None:
    summary = inspect_files([smollm2_path])
    assert (summary.architecture, summary.quantization) == ("llama", "Q4_1")
    assert (summary.num_params, summary.num_vocab) == (134_515_008, 49_152)
    assert (summary.context_length, summary.has_chat_template) == (8192, True)
    assert summary.warnings == ()


@pytest.mark.model
def test_a_real_embedding_model(minilm_path: Path) -> None:
    summary = inspect_files([minilm_path])
    probe_files([minilm_path])
    assert (summary.kind, summary.pooling) == (ModelKind.EMBEDDING, "mean")
    assert (summary.context_length, summary.embedding_length) == (512, 384)
    assert not any(layer.k_elements for layer in summary.memory.layers)


@pytest.mark.model
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 0.99])
def test_a_real_model_cut_off(smollm2_path: Path, tmp_path: Path, share: float) -> None:
    cut = tmp_path / "cut.gguf"
    with smollm2_path.open("rb") as whole:
        # The header, then a hole of the right length: as long as a download that was cut off.
        cut.write_bytes(whole.read(4 * 2**20))
    os.truncate(cut, int(smollm2_path.stat().st_size * share))
    with pytest.raises(GgufRejected) as caught:
        inspect_files([cut])
    assert caught.value.code == "truncated"


def test_what_passes_the_header_but_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    path = Draft().write(tmp_path)
    inspect_files([path])
    with pytest.raises(GgufRejected, match=r"llama\.cpp refuses to load it: \w") as caught:
        probe_files([path])
    assert caught.value.code == "probe_failed"


def test_links_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    Draft().write(tmp_path)
    (tmp_path / "link.gguf").symlink_to(tmp_path / "model.gguf")
    os.mkfifo(tmp_path / "pipe.gguf")
    for name in ("link.gguf", "pipe.gguf", "missing.gguf", "."):
        with pytest.raises(GgufRejected) as caught:
            inspect_files([tmp_path / name])
        assert caught.value.code == "not_a_file"


def run_code(monkeypatch: pytest.MonkeyPatch, code: str, stage: Stage) -> bytes:
    """Run a stage whose child executes ``code`` instead."""
    monkeypatch.setattr(child, "_BOOTSTRAP", code)
    return run_stage(stage, [])


def test_a_child_that_dies_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})"
    with pytest.raises(GgufRejected, match="SIGSEGV") as caught:
        run_code(monkeypatch, code, INSPECTION)
    assert caught.value.code == "inspector_crashed"


def test_a_child_that_hangs_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage("x", 0.2, "probe_crashed")
    with pytest.raises(GgufRejected, match="longer") as caught:
        run_code(monkeypatch, "import time; time.sleep(60)", stage)
    assert caught.value.code == "probe_crashed"


@pytest.mark.parametrize(
    "code", ["pass", "print('{}')", "print('x' * 3_000_000)", "raise SystemExit(3)"]
)
def test_a_child_that_babbles_is_a_verdict(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    with pytest.raises(GgufRejected) as caught:
        run_code(monkeypatch, code, INSPECTION)
    assert caught.value.code == "inspector_crashed"
