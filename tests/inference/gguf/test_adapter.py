"""Adapters are judged by their headers before anything native sees them."""

from pathlib import Path

import gguf
import numpy as np
import pytest

from inference.gguf.examine import inspect_adapter
from inference.gguf.verdict import GgufRejected
from tests.tiny_lora import write_lora
from tests.tiny_model import NUM_LAYERS


@pytest.fixture
def lora(tmp_path: Path) -> Path:
    path = tmp_path / "lora.gguf"
    write_lora(path, seed=1)
    return path


def code_of(path: Path) -> str:
    with pytest.raises(GgufRejected) as caught:
        inspect_adapter(path)
    assert caught.value.reason
    return caught.value.code


def test_an_adapter_is_summed_up(lora: Path) -> None:
    summary = inspect_adapter(lora)
    assert (summary.architecture, summary.num_tensors) == ("llama", 4 * NUM_LAYERS)
    assert summary.size_bytes == lora.stat().st_size


def test_a_model_is_no_adapter(tiny_model_path: Path) -> None:
    assert code_of(tiny_model_path) == "unsupported_kind"


def test_adapters_that_wait_for_words_are_refused(lora: Path) -> None:
    write_lora(lora, seed=1, invocation_tokens=(1, 2))
    assert code_of(lora) == "unsupported_kind"


def test_unknown_architectures_are_refused(lora: Path) -> None:
    write_lora(lora, seed=1, architecture="nothing")
    assert code_of(lora) == "architecture"


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ((), "tensor_count"),
        (("blk.0.attn_norm.weight",), "tensor_count"),
        (("blk.0.attn_q.weight.lora_a",), "tensor_name"),
        (("blk.0.attn_q.weight",), "tensor_name"),
    ],
)
def test_what_is_no_pair_of_halves_is_refused(
    tmp_path: Path, names: tuple[str, ...], code: str
) -> None:
    path = tmp_path / "odd.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    for name in names:
        writer.add_tensor(name, np.ones((4, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert code_of(path) == code


def test_every_cut_file_is_refused(lora: Path) -> None:
    data = lora.read_bytes()
    for size in (0, 10, 100, len(data) // 2, len(data) - 64):
        lora.write_bytes(data[:size])
        assert code_of(lora)
