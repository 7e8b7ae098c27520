"""The sampler of gaps, against llama.cpp's own where that can be used."""

import llama_cpp
import numpy as np
import pytest

from inference.backend.base import Row
from inference.backend.candidates import Candidates
from inference.backend.infill_sampler import MOST_COMPARED, InfillSampler
from inference.backend.llama import LlamaBackend
from inference.backend.llama_model import LlamaModel
from inference.backend.native import sampler_free
from inference.backend.native_samplers import chain_of
from inference.protocol.sampling import SamplingParams
from tests.inference.backend.jobs import make_job

INFILL = SamplingParams(samplers=("top_k", "top_p", "infill"), seed=1)


def draw_row(model: LlamaModel, number: int) -> Row:
    """Draw logits of which some are close to each other, ends among them."""
    chance = np.random.default_rng(number)
    spread = float(chance.choice([1, 3, 9]))
    row: Row = (chance.standard_normal(model.num_vocab) * spread).astype(np.float32)
    row[model.eog_tokens] = row.max() + chance.uniform(-9, 1)
    return row


def left_by_llama_cpp(model: LlamaModel, row: Row) -> set[int]:
    candidates = Candidates(model.num_vocab)
    candidates.fill(row)
    native = chain_of(
        [llama_cpp.llama_sampler_init_top_k(40), llama_cpp.llama_sampler_init_infill(model.vocab)]
    )
    candidates.apply(native)
    sampler_free(native)
    return set(candidates.likeliest(model.num_vocab)[0].tolist())


def left_by_ours(model: LlamaModel, row: Row) -> set[int]:
    candidates = Candidates(model.num_vocab)
    candidates.fill(row)
    candidates.keep(*candidates.likeliest(40))
    InfillSampler(model).narrow(candidates, row)
    return set(candidates.likeliest(model.num_vocab)[0].tolist())


def test_the_same_tokens_are_left_as_by_llama_cpp(model: LlamaModel) -> None:
    rows = [draw_row(model, number) for number in range(200)]
    left = [left_by_ours(model, row) for row in rows]
    assert left == [left_by_llama_cpp(model, row) for row in rows]
    ends = set(model.eog_tokens.tolist())
    assert any(one <= ends for one in left)
    assert any(not one & ends for one in left)


@pytest.mark.parametrize("is_banned", [False, True])
def test_a_text_ends_where_nothing_stands_out_unless_it_may_not(
    backend: LlamaBackend, is_banned: bool
) -> None:
    row = np.zeros(backend.model.num_vocab, np.float32)
    row[backend.model.eog_tokens] = -30
    row[80] = 0.01
    sampler = backend.open_sampler(make_job(sampling=INFILL, ignore_eos=is_banned))
    token = sampler.sample(row).token
    sampler.close()
    assert token == (80 if is_banned else backend.model.eog_tokens[0])


def test_a_whole_vocabulary_is_not_compared_token_by_token(model: LlamaModel) -> None:
    candidates = Candidates(model.num_vocab)
    row = np.linspace(0, 1, model.num_vocab, dtype=np.float32)
    row[model.eog_tokens] = -np.inf
    candidates.fill(row)
    compared: list[int] = []
    read = model.text_bytes
    sampler = InfillSampler(model)
    model.text_bytes = lambda token: compared.append(token) or read(token)  # type: ignore[method-assign, func-returns-value]
    try:
        sampler.narrow(candidates, row)
    finally:
        del model.text_bytes
    assert len(compared) == MOST_COMPARED
