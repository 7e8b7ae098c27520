"""Real weights give the same numbers in a group, but for rounding."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from inference.backend.base import Slice
from inference.backend.grouped import GroupedBackend, open_backend
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from inference.protocol.replicas import RuntimeProfile
from tests.inference.backend.jobs import make_spec
from tests.tiny_architectures import write_recurrent_model, write_windowed_model

PROFILE = RuntimeProfile(num_slots=8, context_length=256, num_threads=1)


def run(backend: LlamaBackend | GroupedBackend) -> np.ndarray:
    """Share a beginning of 150 tokens among six, beside one with nothing in common.

    In the end one of them is shifted.
    """
    shared = [40 + at * 7 % 150 for at in range(150)]
    backend.decode([Slice(0, 0, [*shared, 41], 1)])
    for target in range(1, 6):
        assert backend.copy_prefix(0, target, 150) == 150
    rows = [backend.decode([Slice(6, 0, [*range(40, 60)], 1)]).copy()]
    lengths = [151, 150, 150, 150, 150, 150, 20]
    for step in range(40):
        wanted = [Slice(seq, lengths[seq] + step, [50 + seq + step], 1) for seq in range(7)]
        rows.append(backend.decode(wanted).copy())
    state = backend.save_state(3, 1 << 30)
    assert state is not None and backend.restore_state(7, state, 190) == 190
    rows.append(backend.decode([Slice(7, 190, [60], 1)]).copy())
    backend.shift(2, 160, 20)
    rows += [backend.decode([Slice(2, at, [70], 1)]).copy() for at in range(170, 174)]
    return np.concatenate(rows)


def test_a_group_computes_what_sequences_apart_do(model: LlamaModel) -> None:
    grouped, apart = open_backend(model, PROFILE), LlamaBackend(model, PROFILE)
    assert isinstance(grouped, GroupedBackend)
    together, alone = run(grouped), run(apart)
    # Fused attention adds up in half precision; numbers go up to 11 here.
    assert np.allclose(together, alone, atol=0.1)
    assert (together.argmax(axis=1) == alone.argmax(axis=1)).mean() > 0.98
    assert grouped.sharing_among(range(8)) == (5, 150)
    grouped.close()
    apart.close()


def test_the_small_context_is_as_long_as_the_model_allows(
    model: LlamaModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    profiles: list[RuntimeProfile] = []

    def open_one(model: LlamaModel, profile: RuntimeProfile) -> LlamaBackend:
        profiles.append(profile)
        return LlamaBackend(model, profile)

    monkeypatch.setattr("inference.backend.grouped.LlamaBackend", open_one)
    open_backend(model, msgspec.structs.replace(PROFILE, context_length=100_000)).close()
    assert profiles[1].kv_cells == model.context_length + 128 * PROFILE.num_slots
    # Nobody is warned of its length, as is done where one sequence would have it.
    assert "> n_ctx_train" not in caplog.text
    LlamaBackend(model, profiles[1]).close()
    assert "> n_ctx_train" in caplog.text


@pytest.mark.parametrize(
    "fields",
    [
        {"groups_prefixes": False},
        {"num_slots": 3},
        {"is_kv_unified": True},
        {"is_deterministic": True},
        {"flash_attention": "on"},
    ],
)
def test_profiles_that_rule_a_group_out_have_one_context(
    model: LlamaModel, fields: dict[str, object]
) -> None:
    values: dict[str, object] = {"num_slots": 8, "context_length": 256, "num_threads": 1}
    backend = open_backend(model, RuntimeProfile(**values | fields))  # type: ignore[arg-type]
    assert isinstance(backend, LlamaBackend)
    backend.close()


@pytest.mark.parametrize("write", [write_windowed_model, write_recurrent_model])
def test_states_that_cannot_be_cut_rule_a_group_out(write: object, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path)  # type: ignore[operator]
    model = load_model(make_spec(path), lambda _: None)
    backend = open_backend(model, PROFILE)
    assert isinstance(backend, LlamaBackend)
    backend.close()
    model.close()


@pytest.mark.model
def test_smollm2_goes_on_alike_in_a_group(smollm2_path: Path) -> None:
    model = load_model(make_spec(smollm2_path), lambda _: None)
    backends = open_backend(model, PROFILE), LlamaBackend(model, PROFILE)
    grouped, apart = (run(backend) for backend in backends)
    # The library rounds what a product takes in to eight bits: a spread of numbers remains.
    assert np.corrcoef(grouped.ravel(), apart.ravel())[0, 1] > 0.999
    assert (grouped.argmax(axis=1) == apart.argmax(axis=1)).mean() > 0.9
    for backend in backends:
        backend.close()
    model.close()
