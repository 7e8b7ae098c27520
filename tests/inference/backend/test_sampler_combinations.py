"""Whatever a request combines: a token that is possible, the same again, and no memory lost."""

import gc
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.backend.llama import LlamaBackend
from inference.protocol.errors import EngineError
from inference.protocol.jobs import GenerationJob
from inference.protocol.sampling import SAMPLER_LETTERS, SamplingParams
from tests.inference.backend.jobs import make_job

NUM_COMBINATIONS = 150
CHOICES: dict[str, list[Any]] = {
    "temperature": [-1.0, 0.0, 1e-30, 0.01, 0.8, 2.0, 1e6],
    "dynatemp_range": [0.0, 0.5, 100.0],
    "dynatemp_exponent": [0.0, 1.0, 100.0],
    "top_k": [-1, 0, 1, 40, 2**31 - 1],
    "top_p": [0.0, 0.5, 0.95, 1.0],
    "min_p": [0.0, 0.05, 1.0],
    "typical_p": [0.0, 0.5, 1.0],
    "top_n_sigma": [-1.0, 0.0, 0.01, 1.0, 100.0],
    "xtc_probability": [0.0, 0.5, 1.0],
    "xtc_threshold": [0.0, 0.1, 0.5, 1.0],
    "repeat_last_n": [-1, 0, 1, 64],
    "repeat_penalty": [0.01, 1.0, 1.1, 10.0],
    "presence_penalty": [-2.0, 0.0, 2.0],
    "frequency_penalty": [-2.0, 0.0, 2.0],
    "dry_multiplier": [0.0, 0.8, 100.0],
    "dry_base": [1.0, 1.75, 100.0],
    "dry_allowed_length": [0, 2, 1024],
    "dry_penalty_last_n": [-1, 0, 5],
    "dry_sequence_breakers": [(), ("\n", ":"), ("é", "🧑‍🚀" * 8, "\0x", "<s>")],
    "mirostat": [0, 0, 0, 1, 2],
    "mirostat_tau": [0.0, 5.0, 1000.0],
    "mirostat_eta": [0.0, 0.1, 100.0],
    "min_keep": [0, 1, 1024],
    "adaptive_target": [-1.0, 0.0, 0.5, 1.0],
    "adaptive_decay": [0.0, 0.99],
    "seed": [0, 1, 2**32 - 2],
    "logit_bias": [(), ((70, None), (71, 100.0), (72, -100.0))],
    "grammar": ["", "", "root ::= [a-z]*"],
}


def draw_job(chance: random.Random) -> GenerationJob:
    names = [*SAMPLER_LETTERS.values()]
    settings: dict[str, Any] = {
        name: chance.choice(values) for name, values in CHOICES.items() if chance.random() < 0.5
    }
    settings.setdefault("seed", 3)
    if chance.random() < 0.7:
        settings["samplers"] = tuple(chance.choices(names, k=chance.randint(0, 12)))
    return make_job(
        tuple(chance.choices(range(3, 353), k=chance.randint(1, 40))),
        sampling=SamplingParams(**settings),
        ignore_eos=chance.random() < 0.3,
        min_tokens=chance.choice([0, 2]),
        num_logprobs=chance.choice([None, 0, 5]),
        post_sampling_probs=chance.random() < 0.5,
    )


def say(backend: LlamaBackend, job: GenerationJob, rows: np.ndarray) -> list[int]:
    sampler = backend.open_sampler(job)
    tokens = []
    for row in rows:
        choice = sampler.sample(row.copy())
        tokens.append(choice.token)
        if job.num_logprobs is not None and not choice.is_end:
            assert choice.logprob is not None
            assert choice.logprob.chosen.logprob <= 1e-5
            assert len(choice.logprob.top) <= job.num_logprobs
    sampler.close()
    sampler.close()
    return tokens


@pytest.mark.parametrize("number", range(NUM_COMBINATIONS))
def test_any_combination_gives_possible_tokens_and_the_same_again(
    backend: LlamaBackend, number: int
) -> None:
    chance = random.Random(number)
    draws = np.random.default_rng(number)
    job = draw_job(chance)
    rows = (draws.standard_normal((6, backend.model.num_vocab)) * chance.choice([1, 8, 40])).astype(
        np.float32
    )
    rows[:, draws.permutation(rows.shape[1])[: chance.choice([0, 100, 340])]] = -np.inf
    tokens = say(backend, job, rows)
    assert tokens == say(backend, job, rows)
    ends = set(backend.model.eog_tokens.tolist())
    for row, token in zip(rows, tokens, strict=True):
        assert token in ends or row[token] > -np.inf


@pytest.mark.parametrize("params", [{}, {"temperature": 0.0}, {"top_k": 0, "typical_p": 0.5}])
def test_a_row_without_any_possible_token_ends_the_text(
    backend: LlamaBackend, params: dict[str, Any]
) -> None:
    sampler = backend.open_sampler(make_job(sampling=SamplingParams(**params)))
    choice = sampler.sample(np.full(backend.model.num_vocab, -np.inf, np.float32))
    assert choice.is_end
    assert backend.model.is_end_of_generation(choice.token)
    with pytest.raises(EngineError, match="not a number"):
        sampler.sample(np.full(backend.model.num_vocab, np.nan, np.float32))
    sampler.close()


def test_a_thousand_samplers_leave_no_memory_behind(backend: LlamaBackend) -> None:
    chance = random.Random(1)
    jobs = [draw_job(chance) for _ in range(20)]
    row = np.zeros(backend.model.num_vocab, np.float32)

    def open_all() -> None:
        for job in jobs:
            sampler = backend.open_sampler(job)
            sampler.sample(row.copy())
            sampler.close()

    for _ in range(10):
        open_all()
    before = resident_bytes()
    for _ in range(50):
        open_all()
    assert resident_bytes() - before < 4 << 20


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
