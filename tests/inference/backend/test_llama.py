"""The native backend, on a tiny model with random weights."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from inference.backend.base import DecodeError, Slice
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel, load_model
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.replicas import RuntimeProfile
from tests.inference.backend.jobs import make_spec

PROMPT = tuple(range(40, 70))


def logits_of(
    backend: LlamaBackend, tokens: tuple[int, ...], slot: int = 0, start: int = 0
) -> NDArray[np.float32]:
    rows = backend.decode([Slice(slot, start, tokens, True)])
    return rows[:1].reshape(-1).copy()


def test_a_decode_gives_a_row_of_logits_per_slice_that_wants_one(backend: LlamaBackend) -> None:
    rows = backend.decode(
        [Slice(0, 0, PROMPT, True), Slice(1, 0, PROMPT[:5], False), Slice(2, 0, (50,), True)]
    )
    assert rows.shape == (2, backend.model.num_vocab)
    assert np.isfinite(rows).all()


def test_neighbours_in_the_batch_change_nothing(backend: LlamaBackend) -> None:
    alone = logits_of(backend, PROMPT)
    backend.keep_prefix(0, 0)
    rows = backend.decode([Slice(0, 0, PROMPT, True), Slice(1, 0, PROMPT[::-1], True)])
    assert np.allclose(rows[0], alone, atol=1e-3)
    assert not np.allclose(rows[1], alone, atol=1e-3)


def test_a_kept_prefix_gives_the_same_logits(backend: LlamaBackend) -> None:
    cold = logits_of(backend, PROMPT)
    assert backend.keep_prefix(0, 20) == 20
    assert np.allclose(logits_of(backend, PROMPT[20:], start=20), cold, atol=1e-3)


def test_a_copied_prefix_gives_the_same_logits(backend: LlamaBackend) -> None:
    cold = logits_of(backend, PROMPT)
    assert backend.copy_prefix(0, 3, 20) == 20
    assert np.allclose(logits_of(backend, PROMPT[20:], slot=3, start=20), cold, atol=1e-3)
    assert np.allclose(
        logits_of(backend, (77,), start=30), logits_of(backend, (77,), 3, 30), atol=1e-3
    )


def test_prefixes_are_shared_in_a_unified_cache(model: LlamaModel) -> None:
    profile = RuntimeProfile(num_slots=2, context_length=256, is_kv_unified=True, num_threads=1)
    backend = LlamaBackend(model, profile)
    cold = logits_of(backend, PROMPT)
    assert backend.copy_prefix(0, 1, 20) == 20
    assert np.allclose(logits_of(backend, PROMPT[20:], slot=1, start=20), cold, atol=1e-3)
    backend.close()


def test_a_wrong_position_is_a_decode_error_and_the_sequence_survives(
    backend: LlamaBackend,
) -> None:
    cold = logits_of(backend, PROMPT)
    with pytest.raises(DecodeError):
        backend.decode([Slice(0, 5, (50,), True)])
    assert backend.keep_prefix(0, 20) == 20
    assert np.allclose(logits_of(backend, PROMPT[20:], start=20), cold, atol=1e-3)


def test_quantized_cells_work(model: LlamaModel) -> None:
    profile = RuntimeProfile(
        num_slots=1, context_length=256, cache_type_k="q8_0", cache_type_v="q8_0", num_threads=1
    )
    try:
        backend = LlamaBackend(model, profile)
    except EngineError as error:
        assert error.code is ErrorCode.ENGINE_FAILED  # heads of 16 values fit no block of 32
        return
    assert np.isfinite(logits_of(backend, PROMPT)).all()
    backend.close()


def test_an_unknown_cache_type_is_refused(model: LlamaModel) -> None:
    with pytest.raises(EngineError, match="known are"):
        LlamaBackend(model, RuntimeProfile(cache_type_k="q1"))


def test_the_context_is_capped_at_what_the_model_was_trained_for(tiny_model_path: Path) -> None:
    profile = RuntimeProfile(context_length=100_000, num_slots=1)
    model = load_model(make_spec(tiny_model_path, profile=profile), lambda _: None)
    assert model.facts().context_length == model.facts().num_ctx_train
    model.close()


def test_loading_tells_its_progress(tiny_model_path: Path) -> None:
    told: list[float] = []
    load_model(make_spec(tiny_model_path), told.append).close()
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_damaged_file_is_an_engine_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    for path in (broken, tmp_path / "absent.gguf"):
        with pytest.raises(EngineError, match="could not be loaded") as caught:
            load_model(make_spec(path), lambda _: None)
        assert caught.value.code is ErrorCode.ENGINE_FAILED


def test_tokens_and_text_convert_both_ways(model: LlamaModel) -> None:
    for text in ("plain", "  a  b\n", "é漢🧑", "a\0b"):
        tokens = model.tokenize(text, add_special=False, parse_special=False)
        assert model.detokenize(tokens) == text.encode()
        assert b"".join(map(model.text_bytes, tokens)) == text.encode()


def test_control_tokens_are_named_but_render_as_nothing(model: LlamaModel) -> None:
    control = model.control_tokens()
    assert {"<s>", "</s>"} <= set(control)
    end = control["</s>"]
    assert model.is_end_of_generation(end)
    assert (model.text_bytes(end), model.token_bytes(end)) == (b"", b"</s>")
    assert model.tokenize("</s>", add_special=False, parse_special=True) == [end]
    assert end not in model.tokenize("</s>", add_special=False, parse_special=False)
