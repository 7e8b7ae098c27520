"""Every knob of sampling, on logits made by hand over the tiny model's vocabulary."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from inference.backend.base import Choice, Row
from inference.backend.greedy import BestToken
from inference.backend.llama import LlamaBackend
from inference.backend.token_sampler import TokenSampler
from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.sampling import SamplingParams
from tests.inference.backend.jobs import make_job

PLAIN: dict[str, Any] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


def make_row(backend: LlamaBackend, best: dict[int, float]) -> Row:
    row = np.full(backend.model.num_vocab, -20.0, np.float32)
    for token, logit in best.items():
        row[token] = logit
    return row


def sample_many(
    backend: LlamaBackend,
    best: dict[int, float],
    count: int,
    *,
    prompt: tuple[int, ...] = (5,),
    **params: Any,
) -> list[int]:
    job = make_job(
        prompt, sampling=SamplingParams(**{"seed": 1, "temperature": 1.0, **PLAIN, **params})
    )
    sampler = backend.open_sampler(job)
    tokens = [sampler.sample(make_row(backend, best)).token for _ in range(count)]
    sampler.close()
    return tokens


def test_greedy_takes_the_most_likely_token_without_native_samplers(backend: LlamaBackend) -> None:
    sampler = backend.open_sampler(make_job())
    assert isinstance(sampler, TokenSampler)
    assert isinstance(sampler._chooser, BestToken)
    assert sampler.sample(make_row(backend, {70: 1.0, 71: 2.0})).token == 71


def test_one_seed_gives_one_series(backend: LlamaBackend) -> None:
    best = dict.fromkeys(range(40, 80), 1.0)
    first = sample_many(backend, best, 30, seed=0)
    assert sample_many(backend, best, 30, seed=0) == first
    assert sample_many(backend, best, 30, seed=1) != first
    assert sample_many(backend, best, 30, seed=None) != sample_many(backend, best, 30, seed=None)


def test_temperature_flattens_and_sharpens(backend: LlamaBackend) -> None:
    best = {70: 2.0, 71: 1.0}
    cold = Counter(sample_many(backend, best, 200, temperature=0.2))
    hot = Counter(sample_many(backend, best, 200, temperature=2.0))
    assert cold[70] > 190
    assert hot[71] > 60


@pytest.mark.parametrize(
    "params",
    [
        {"top_k": 1},
        {"top_p": 0.1},
        {"min_p": 0.9},
        {"top_n_sigma": 0.01},
        {"typical_p": 0.01},
        {"temperature": 0.0, "repeat_penalty": 1.01},
    ],
)
def test_each_truncation_leaves_the_best_token(
    backend: LlamaBackend, params: dict[str, Any]
) -> None:
    assert set(sample_many(backend, {70: 3.0, 71: 1.0}, 20, **params)) == {70}


def test_xtc_and_mirostat_choose_possible_tokens(backend: LlamaBackend) -> None:
    best = {70: 3.0, 71: 2.9, 72: 2.8}
    assert set(sample_many(backend, best, 40, xtc_probability=1.0)) <= {71, 72}
    for mirostat in (1, 2):
        assert set(sample_many(backend, best, 20, mirostat=mirostat)) <= set(best)


def test_penalties_remember_generated_and_prompt_tokens(backend: LlamaBackend) -> None:
    best = {70: 3.0, 71: 2.0}
    greedy: dict[str, Any] = {"temperature": 0.0, "presence_penalty": 1.5}
    assert sample_many(backend, best, 2, **greedy) == [70, 71]
    assert sample_many(backend, best, 1, prompt=(70,), **greedy) == [71]
    assert sample_many(backend, best, 1, prompt=(70, 9), repeat_last_n=1, **greedy) == [70]
    assert sample_many(backend, best, 1, prompt=(70,), repeat_last_n=0, **greedy) == [70]


def test_dry_breaks_a_repeated_phrase(backend: LlamaBackend) -> None:
    phrase = (70, 71, 72, 73)
    best = {73: 3.0, 80: 2.0}
    dry: dict[str, Any] = {"temperature": 0.0, "dry_multiplier": 5.0}
    assert sample_many(backend, best, 1, prompt=phrase + phrase[:3], **dry) == [80]


def test_bias_bans_and_forces(backend: LlamaBackend) -> None:
    best = {70: 3.0, 71: 2.0}
    for temperature in (0.0, 1.0):
        banned = sample_many(backend, best, 5, temperature=temperature, logit_bias=((70, None),))
        forced = sample_many(backend, best, 5, temperature=temperature, logit_bias=((90, 100.0),))
        assert (set(banned), set(forced)) == ({71}, {90})


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_end_tokens_are_banned_when_asked(backend: LlamaBackend, temperature: float) -> None:
    end = int(backend.model.eog_tokens[0])
    sampling = SamplingParams(temperature=temperature, **PLAIN)
    row = {end: 30.0, 70: 3.0}
    never = backend.open_sampler(make_job(sampling=sampling, ignore_eos=True))
    later = backend.open_sampler(make_job(sampling=sampling, min_tokens=2))
    assert {never.sample(make_row(backend, row)).token for _ in range(4)} == {70}
    assert [later.sample(make_row(backend, row)).token for _ in range(3)] == [70, 70, end]
    never.close()
    later.close()


def test_a_control_token_that_stops_is_banned_until_there_are_min_tokens(
    backend: LlamaBackend,
) -> None:
    sampling = SamplingParams(temperature=0.0)
    job = make_job(sampling=sampling, stop=("<s>", "text"), min_tokens=2, ignore_eos=True)
    sampler = backend.open_sampler(job)
    chosen = [sampler.sample(make_row(backend, {1: 30.0, 70: 3.0})).token for _ in range(3)]
    assert chosen == [70, 70, 1]
    sampler.close()


def say_by_grammar(backend: LlamaBackend, grammar: str, **fields: Any) -> bytes:
    job = make_job(sampling=SamplingParams(grammar=grammar, seed=3, **PLAIN), **fields)
    sampler = backend.open_sampler(job)
    assert isinstance(sampler, TokenSampler)
    draw = np.random.default_rng(5)
    said = b""
    for _ in range(40):
        token = sampler.sample(
            draw.standard_normal(backend.model.num_vocab).astype(np.float32)
        ).token
        if backend.model.is_end_of_generation(token):
            break
        said += backend.model.text_bytes(token)
    sampler.close()
    sampler.close()
    return said


def test_a_grammar_forces_its_text(backend: LlamaBackend) -> None:
    assert say_by_grammar(backend, 'root ::= "🧑é漢 ok"') == "🧑é漢 ok".encode()


def test_a_finished_grammar_ends_even_where_the_end_is_banned(backend: LlamaBackend) -> None:
    assert say_by_grammar(backend, 'root ::= "a"', ignore_eos=True) == b"a"


@pytest.mark.parametrize(
    "grammar",
    ['root ::= root "a"', "root ::= ", "a ::= b", "root ::= missing", 'root ::= "a" ::= "b"'],
)
def test_a_bad_grammar_fails_closed(backend: LlamaBackend, grammar: str) -> None:
    with pytest.raises(EngineError) as caught:
        backend.open_sampler(make_job(sampling=SamplingParams(grammar=grammar)))
    assert caught.value.code is ErrorCode.INVALID_GRAMMAR


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"samplers": ("top_k", "magic")}, ErrorCode.INVALID_SAMPLING),
        ({"repeat_penalty": 0.0}, ErrorCode.INVALID_SAMPLING),
        ({"mirostat": 3}, ErrorCode.INVALID_SAMPLING),
        ({"logit_bias": ((10**6, 1.0),)}, ErrorCode.INVALID_TOKEN_ID),
    ],
)
def test_impossible_settings_are_refused(
    backend: LlamaBackend, params: dict[str, Any], code: ErrorCode
) -> None:
    with pytest.raises(EngineError) as caught:
        backend.open_sampler(make_job(sampling=SamplingParams(**params)))
    assert caught.value.code is code


def choose(
    backend: LlamaBackend, best: dict[int, float], params: dict[str, Any], **fields: Any
) -> Choice:
    sampler = backend.open_sampler(make_job(sampling=SamplingParams(**params), **fields))
    choice = sampler.sample(make_row(backend, best))
    sampler.close()
    return choice


@pytest.mark.parametrize(
    "params", [{"temperature": 0.0}, {"temperature": 1.0, **PLAIN, "top_k": 1}]
)
def test_logprobs_are_those_of_the_raw_logits(
    backend: LlamaBackend, params: dict[str, Any]
) -> None:
    best = {70: 3.0, 71: 2.0, 72: 1.0}
    logprob = choose(backend, best, params, num_logprobs=2).logprob
    assert logprob is not None
    expected = 3.0 - np.log(sum(np.exp(list(best.values()))))
    assert logprob.chosen.logprob == pytest.approx(expected, abs=1e-4)
    assert [candidate.id for candidate in logprob.top] == [70, 71]


def test_bias_does_not_change_logprobs(backend: LlamaBackend) -> None:
    for temperature in (0.0, 1.0):
        params = {"temperature": temperature, "logit_bias": ((72, 100.0),)}
        logprob = choose(backend, {70: 3.0, 72: 1.0}, params, num_logprobs=0).logprob
        assert logprob is not None
        assert (logprob.chosen.id, logprob.top) == (72, ())
        assert logprob.chosen.logprob == pytest.approx(-2.127, abs=1e-2)


def test_probabilities_after_sampling_are_of_what_was_left(backend: LlamaBackend) -> None:
    best = {70: 3.0, 71: 3.0, 72: 1.0}
    params = {"temperature": 1.0, **PLAIN, "top_k": 2, "seed": 1}
    logprob = choose(backend, best, params, num_logprobs=5, post_sampling_probs=True).logprob
    assert logprob is not None
    assert {candidate.id for candidate in logprob.top} == {70, 71}
    assert [candidate.logprob for candidate in logprob.top] == pytest.approx([np.log(0.5)] * 2)
    greedy = choose(backend, best, {"temperature": 0.0}, num_logprobs=5, post_sampling_probs=True)
    assert greedy.logprob is not None
    assert [candidate.logprob for candidate in greedy.logprob.top] == [0.0]


def test_a_leading_top_k_looks_at_likely_tokens_only_and_chooses_the_same(
    backend: LlamaBackend,
) -> None:
    row = np.random.default_rng(9).standard_normal(backend.model.num_vocab).astype(np.float32) * 9
    series = []
    for samplers in (("top_k", "temperature"), ("min_p", "top_k", "temperature")):
        params = SamplingParams(seed=4, top_k=5, min_p=1e-9, samplers=samplers)
        sampler = backend.open_sampler(make_job(sampling=params))
        series.append([sampler.sample(row.copy()).token for _ in range(60)])
        sampler.close()
    assert series[0] == series[1]
    assert len(set(series[0])) > 1
