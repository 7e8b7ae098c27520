"""Every sampler leaves what a plain computation says it should, on logits made at random."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from inference.backend.base import Row
from inference.backend.llama import LlamaBackend
from inference.protocol.sampling import SamplingParams
from tests.inference.backend import distributions
from tests.inference.backend.distributions import Logits, left_by, probabilities

ALL = (
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
)
FUNCTIONS = {"typ_p": "typical_p"}
OFF: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 4}


def make_row(backend: LlamaBackend, seed: int, *, num_banned: int = 0) -> Row:
    random = np.random.default_rng(seed)
    row = (random.standard_normal(backend.model.num_vocab) * 3).astype(np.float32)
    row[random.permutation(len(row))[:num_banned]] = -np.inf
    return row


def expect(
    row: Row, params: dict[str, Any], order: Sequence[str], memory: Sequence[int] = ()
) -> Logits:
    logits = row.astype(np.float64)
    for name in order:
        function = getattr(distributions, FUNCTIONS.get(name, name))
        logits = (
            function(logits, params, memory)
            if name in ("penalties", "dry")
            else function(logits, params)
        )
    return probabilities(logits)


def assert_leaves(
    backend: LlamaBackend,
    row: Row,
    params: dict[str, Any],
    order: Sequence[str],
    prompt: Sequence[int] = (5,),
    memory: Sequence[int] = (),
) -> None:
    samplers = tuple(order) if "samplers" not in params else params["samplers"]
    settings = SamplingParams(**{**OFF, **params, "samplers": samplers})
    left = left_by(backend, row, settings, prompt)
    assert left == pytest.approx(expect(row, OFF | params, order, memory), abs=2e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_banned", [0, 300])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("top_k", {"top_k": 1}),
        ("top_k", {"top_k": 40}),
        ("top_p", {"top_p": 0.6}),
        ("top_p", {"top_p": 0.3, "min_keep": 9}),
        ("min_p", {"min_p": 0.1}),
        ("min_p", {"min_p": 0.7, "min_keep": 5}),
        ("top_n_sigma", {"top_n_sigma": 1.0}),
        ("typ_p", {"typical_p": 0.5}),
        ("temperature", {"temperature": 0.3}),
        ("temperature", {"temperature": 1.7}),
        ("temperature", {"temperature": 1.0, "dynatemp_range": 0.5}),
        ("temperature", {"temperature": 0.8, "dynatemp_range": 0.8, "dynatemp_exponent": 2.0}),
        ("xtc", {"xtc_probability": 1.0, "xtc_threshold": 0.05}),
    ],
)
def test_one_sampler_leaves_what_it_should(
    backend: LlamaBackend, name: str, params: dict[str, Any], num_banned: int, seed: int
) -> None:
    row = make_row(backend, seed, num_banned=num_banned)
    assert_leaves(backend, row, params, [name])


@pytest.mark.parametrize("seed", range(4))
def test_samplers_work_in_the_order_they_are_named(backend: LlamaBackend, seed: int) -> None:
    row = make_row(backend, seed)
    random = np.random.default_rng(100 + seed)
    params = {"top_k": 50, "top_p": 0.8, "min_p": 0.02, "temperature": 1.5, "top_n_sigma": 2.0}
    names = ["top_k", "top_p", "min_p", "temperature", "top_n_sigma"]
    for _ in range(6):
        order = [names[i] for i in random.permutation(5)[: random.integers(1, 6)]]
        assert_leaves(backend, row, params, order)


@pytest.mark.parametrize("tail", [[], ["top_k"], ["min_p", "temperature"]])
@pytest.mark.parametrize(
    ("params", "memory_length"),
    [
        ({"repeat_penalty": 1.3}, 64),
        ({"repeat_penalty": 0.7, "repeat_last_n": -1}, 200),
        ({"presence_penalty": 2.0, "frequency_penalty": 0.5, "repeat_last_n": 10}, 10),
        ({"frequency_penalty": -1.0}, 64),
    ],
)
def test_penalties_count_the_last_tokens(
    backend: LlamaBackend, params: dict[str, Any], memory_length: int, tail: list[str]
) -> None:
    random = np.random.default_rng(7)
    prompt = random.integers(3, 60, 150).tolist()
    row = make_row(backend, 8)
    params = {**params, "top_k": 5, "min_p": 0.1, "temperature": 0.9}
    order = ["penalties", *tail]
    assert_leaves(backend, row, params, order, prompt, prompt[-memory_length:])


@pytest.mark.parametrize("allowed", [1, 2, 4])
@pytest.mark.parametrize("tail", [[], ["top_k"]])
def test_dry_punishes_what_repeats_a_phrase(
    backend: LlamaBackend, allowed: int, tail: list[str]
) -> None:
    random = np.random.default_rng(3)
    # Letters, which are no breakers, in phrases that come again.
    phrases = [random.integers(320, 330, 6).tolist() for _ in range(3)]
    prompt = [token for i in random.integers(0, 3, 12) for token in phrases[i]][:-2]
    params = {
        "dry_multiplier": 0.8,
        "dry_base": 1.5,
        "dry_allowed_length": allowed,
        "dry_sequence_breakers": (),
        "top_k": 4,
    }
    assert_leaves(backend, make_row(backend, 5), params, ["dry", *tail], prompt, prompt)


def test_a_breaker_ends_what_counts_as_repeated(backend: LlamaBackend) -> None:
    a, b, colon = (
        backend.model.tokenize(x, add_special=False, parse_special=False)[0] for x in "ab:"
    )
    prompt = [a, b, colon, b, a, b, colon]
    row = make_row(backend, 6)
    params = {**OFF, "dry_multiplier": 5.0, "dry_allowed_length": 1, "samplers": ("dry",)}
    broken = left_by(backend, row, SamplingParams(**params), prompt)
    assert broken == pytest.approx(probabilities(row.astype(np.float64)), abs=2e-5)
    whole = left_by(backend, row, SamplingParams(**params, dry_sequence_breakers=("!",)), prompt)
    assert whole[b] < broken[b] / 10


@pytest.mark.parametrize("mirostat", [1, 2])
def test_mirostat_cuts_by_surprise(backend: LlamaBackend, mirostat: int) -> None:
    row = make_row(backend, 2)
    calm = left_by(backend, row, SamplingParams(**OFF, mirostat=mirostat, mirostat_tau=1.0))
    wild = left_by(backend, row, SamplingParams(**OFF, mirostat=mirostat, mirostat_tau=8.0))
    assert 0 < (calm > 0).sum() < (wild > 0).sum()
    if mirostat == 2:
        surprise = -np.log2(probabilities(row.astype(np.float64)))
        assert (calm > 0).sum() == (surprise <= 2.0).sum()


def test_adaptive_p_prefers_tokens_of_the_wanted_probability(backend: LlamaBackend) -> None:
    row = np.full(backend.model.num_vocab, -np.inf, np.float32)
    row[[70, 71, 72]] = np.log([0.6, 0.3, 0.1])
    best = {}
    for target in (0.0, 0.3, 0.6, -1.0):
        params = SamplingParams(**OFF, samplers=("adaptive_p",), adaptive_target=target)
        best[target] = int(left_by(backend, row, params).argmax())
    assert best == {0.0: 72, 0.3: 71, 0.6: 70, -1.0: 70}


@pytest.mark.parametrize("params", [{"typical_p": 0.5}, {"xtc_probability": 1.0}])
def test_greedy_choice_minds_samplers_that_may_take_the_best_away(
    backend: LlamaBackend, params: dict[str, Any]
) -> None:
    row = np.full(backend.model.num_vocab, -30.0, np.float32)
    row[[70, 71, 72, 73]] = np.log([0.4, 0.2, 0.2, 0.2])
    settings = SamplingParams(**{**OFF, "temperature": 0.0, **params})
    left = left_by(backend, row, settings)
    assert left[70] == 0
    assert left.max() == 1
