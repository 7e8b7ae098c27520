"""The memory estimate against the sizes that llama.cpp gives for its own buffers."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from inference.gguf.compute_buffer import compute_bytes
from inference.gguf.context_use import generating
from inference.gguf.examine import inspect_files
from inference.gguf.memory import Load, estimate_memory
from inference.gguf.shape import MemoryShape
from inference.protocol.replicas import RuntimeProfile
from tests.inference.backend.jobs import make_spec

MIB = 1 << 20
_SIZE = re.compile(r"(model|KV|RS|compute) buffer size = +([\d.]+) MiB")
PROFILES = [
    RuntimeProfile(num_slots=4, context_length=300),
    RuntimeProfile(num_slots=2, context_length=1024, flash_attention="off"),
    RuntimeProfile(num_slots=4, context_length=512, is_kv_unified=True, kv_cells=600),
    RuntimeProfile(num_slots=1, context_length=512, cache_type_k="q8_0", cache_type_v="q4_0"),
    RuntimeProfile(num_slots=16, context_length=256, step_token_budget=512),
]


def native_sizes(
    model: LlamaModel, profile: RuntimeProfile, caplog: pytest.LogCaptureFixture
) -> dict[str, float]:
    """Make a context and give the bytes of its buffers, as llama.cpp logs them."""
    caplog.clear()
    model.context_length = profile.context_length
    with caplog.at_level(logging.DEBUG):
        LlamaBackend(model, profile).close()
    sizes: dict[str, float] = {}
    for kind, size in _SIZE.findall(caplog.text):
        sizes[kind] = sizes.get(kind, 0.0) + float(size) * MIB
    return sizes


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> Iterator[LlamaModel]:
    """SmolLM2, loaded once."""
    model = load_model(make_spec(smollm2_path), lambda _: None)
    yield model
    model.close()


@pytest.fixture(scope="module")
def shape(smollm2_path: Path) -> MemoryShape:
    """What its header says."""
    return inspect_files([smollm2_path]).memory


@pytest.mark.model
@pytest.mark.parametrize("profile", PROFILES)
def test_contexts_are_as_large_as_llama_cpp_makes_them(
    smollm2: LlamaModel,
    shape: MemoryShape,
    profile: RuntimeProfile,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sizes = native_sizes(smollm2, profile, caplog)
    load = Load(shape=shape, context_length=profile.context_length)
    assert estimate_memory(load, profile).host.cache_bytes == pytest.approx(sizes["KV"], rel=0.01)
    use = generating(shape, profile, profile.context_length)
    compute = compute_bytes(shape, use, use.num_most_rows)
    assert compute == pytest.approx(sizes["compute"], rel=0.1)


@pytest.mark.model
def test_weights_are_as_large_as_llama_cpp_says(smollm2: LlamaModel, shape: MemoryShape) -> None:
    assert shape.weights_bytes == pytest.approx(smollm2.facts().size_bytes, rel=0.001)


def test_the_tiny_model_is_estimated_too(
    model: LlamaModel, tiny_model_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shape = inspect_files([tiny_model_path]).memory
    profile = msgspec.structs.replace(PROFILES[0], context_length=512)
    load = Load(shape=shape, context_length=512)
    sizes = native_sizes(model, profile, caplog)
    assert estimate_memory(load, profile).host.cache_bytes == pytest.approx(sizes["KV"], rel=0.01)
