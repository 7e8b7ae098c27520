"""LoRA adapters on the tiny model: loaded, refused, and switched between batches."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from inference.backend.base import Slice
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from inference.protocol.errors import EngineError
from inference.protocol.jobs import Loras
from inference.protocol.replicas import AdapterFacts, LoraAdapter, ReplicaSpec
from tests.inference.backend.jobs import make_spec
from tests.tiny_lora import write_lora

PROMPT = [5, 6, 7, 8, 9]


@pytest.fixture(scope="module")
def spec(tiny_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> ReplicaSpec:
    """A replica of the tiny model with two random adapters."""
    folder = tmp_path_factory.mktemp("loras")
    loras = []
    for seed, (name, scale) in enumerate((("polite", 0.5), ("legal", 0.0))):
        write_lora(folder / f"{name}.gguf", seed=seed)
        loras.append(LoraAdapter(name=name, file=str(folder / f"{name}.gguf"), scale=scale))
    return msgspec.structs.replace(make_spec(tiny_model_path), loras=tuple(loras))


@pytest.fixture(scope="module")
def adapted(spec: ReplicaSpec) -> Iterator[LlamaModel]:
    """The tiny model with its adapters."""
    model = load_model(spec, lambda _: None)
    yield model
    model.close()


@pytest.fixture
def context(adapted: LlamaModel, spec: ReplicaSpec) -> Iterator[LlamaBackend]:
    """A fresh context."""
    backend = LlamaBackend(adapted, spec.profile)
    yield backend
    backend.close()


def logits(context: LlamaBackend, loras: Loras) -> np.ndarray:
    context.keep_prefix(0, 0)
    context.use_adapters(loras)
    return np.array(context.decode([Slice(0, 0, PROMPT, 1)])[0])


def test_the_model_lists_its_adapters(adapted: LlamaModel) -> None:
    assert adapted.facts().adapters == (
        AdapterFacts(name="polite", scale=0.5),
        AdapterFacts(name="legal", scale=0.0),
    )


def test_each_choice_of_adapters_computes_something_else(context: LlamaBackend) -> None:
    choices: list[Loras] = [(), ((0, 1.0),), ((1, 1.0),), ((0, 1.0), (1, 1.0)), ((0, 0.5),)]
    rows = [logits(context, choice) for choice in choices]
    for at, row in enumerate(rows):
        assert all(np.abs(row - other).max() > 0.01 for other in rows[:at])


def test_a_choice_computes_the_same_again_after_others(context: LlamaBackend) -> None:
    first = logits(context, ((0, 1.0),))
    plain = logits(context, ())
    assert np.array_equal(logits(context, ((0, 1.0),)), first)
    assert np.array_equal(logits(context, ()), plain)


def test_no_adapter_acts_unless_it_is_asked_for(context: LlamaBackend) -> None:
    untouched = context.decode([Slice(1, 0, PROMPT, 1)])[0].copy()
    assert np.array_equal(logits(context, ()), untouched)


def refusal(spec: ReplicaSpec, path: Path) -> str:
    bad = LoraAdapter(name="wrong one", file=str(path))
    with pytest.raises(EngineError) as caught:
        load_model(msgspec.structs.replace(spec, loras=(bad,)), lambda _: None)
    assert "'wrong one'" in caught.value.message
    return caught.value.message


def test_an_adapter_that_does_not_fit_stops_the_load_by_name(
    spec: ReplicaSpec, tiny_model_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.gguf"
    write_lora(path, seed=1, num_embd=32)
    assert "incorrect shape" in refusal(spec, path)
    write_lora(path, seed=1, num_layers=9)
    assert "does not exist in base model" in refusal(spec, path)
    write_lora(path, seed=1, architecture="gemma")
    assert "arch mismatch" in refusal(spec, path)
    write_lora(path, seed=1, invocation_tokens=(5, 6))
    assert "from certain words on" in refusal(spec, path)
    assert "general.type" in refusal(spec, tiny_model_path)
    assert "could not be loaded" in refusal(spec, tmp_path / "missing.gguf")


def test_a_damaged_adapter_stops_the_load(spec: ReplicaSpec, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    write_lora(path, seed=1)
    data = path.read_bytes()
    for size in (0, 3, 40, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        refusal(spec, path)
