"""How likely tokens were, against a plain computation."""

from typing import Any

import numpy as np
import pytest

from inference.backend.base import Rows
from inference.backend.llama import LlamaBackend
from inference.backend.logprobs import (
    first_token,
    logits_to_logprob,
    probs_to_logprob,
    rows_to_logprobs,
)
from inference.protocol.events import LEAST_LOGPROB, TokenLogprob
from inference.protocol.sampling import SamplingParams
from tests.inference.backend.jobs import make_job


def make_rows(backend: LlamaBackend, scale: float) -> Rows:
    random = np.random.default_rng(3)
    rows = random.standard_normal((7, backend.model.num_vocab)) * scale
    return rows.astype(np.float32)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("num_top", [0, 1, 5, 20, 1000])
def test_rows_give_the_logarithm_of_the_softmax(
    backend: LlamaBackend, scale: float, num_top: int
) -> None:
    rows = make_rows(backend, scale)
    tokens = [70, 71, 72, 300, 301, 0, 2]
    found = list(rows_to_logprobs(backend.model, rows, tokens, num_top))
    for row, token, entry in zip(rows.astype(np.float64), tokens, found, strict=True):
        logprobs = row - row.max() - np.log(np.exp(row - row.max()).sum())
        best = np.argsort(-logprobs, kind="stable")[:num_top]
        assert entry.chosen.logprob == pytest.approx(logprobs[token], abs=1e-4)
        assert [one.id for one in entry.top] == best.tolist()
        assert [one.logprob for one in entry.top] == pytest.approx(logprobs[best], abs=1e-4)


def test_a_chosen_token_is_as_likely_as_the_same_among_the_best(backend: LlamaBackend) -> None:
    rows = make_rows(backend, 5.0)
    tokens = rows.argmax(axis=1).tolist()
    for entry in rows_to_logprobs(backend.model, rows, tokens, 3):
        assert entry.chosen == entry.top[0]


def test_rows_are_left_as_they_are(backend: LlamaBackend) -> None:
    rows = make_rows(backend, 5.0)
    before = rows.copy()
    list(rows_to_logprobs(backend.model, rows, [5] * len(rows), 20))
    assert (rows == before).all()


def test_what_is_impossible_has_a_number_that_json_can_carry(backend: LlamaBackend) -> None:
    row = make_rows(backend, 1.0)[0]
    row[70] = -np.inf
    assert logits_to_logprob(backend.model, row, 70, b"", 0).chosen.logprob == LEAST_LOGPROB


def test_control_tokens_have_a_name_in_prompts_and_no_text_in_answers(
    backend: LlamaBackend,
) -> None:
    rows = make_rows(backend, 1.0)[:1]
    (prompt,) = rows_to_logprobs(backend.model, rows, [2], 0)
    answer = say_and_judge(backend, {2: 9.0})
    assert (prompt.chosen.bytes_latin1, answer.chosen.bytes_latin1) == ("</s>", "")
    assert first_token(backend.model, 1).chosen.bytes_latin1 == "<s>"


@pytest.mark.parametrize("is_post_sampling", [False, True])
@pytest.mark.parametrize("named", ["preserved", "stop", ""])
def test_a_control_token_has_the_text_that_it_adds_to_the_answer(
    backend: LlamaBackend, named: str, is_post_sampling: bool
) -> None:
    sampling = SamplingParams(
        temperature=0.0, preserved_tokens=("<s>",) if named == "preserved" else ()
    )
    stop = ("<s>",) if named == "stop" else ()
    fields: dict[str, Any] = {"post_sampling_probs": is_post_sampling, "stop": stop}
    answer = say_and_judge(backend, {1: 9.0}, sampling=sampling, **fields)
    assert answer.chosen.bytes_latin1 == ("<s>" if named else "")


@pytest.mark.parametrize("is_post_sampling", [False, True])
def test_an_end_that_nobody_chose_is_told_too(
    backend: LlamaBackend, is_post_sampling: bool
) -> None:
    sampling = SamplingParams(temperature=0.0, grammar='root ::= "a"')
    fields: dict[str, Any] = {"sampling": sampling, "post_sampling_probs": is_post_sampling}
    sampler = backend.open_sampler(make_job(num_logprobs=1, ignore_eos=True, **fields))
    choices = [sampler.sample(np.zeros(backend.model.num_vocab, np.float32)) for _ in range(2)]
    sampler.close()
    told = [choice.logprob for choice in choices if choice.logprob is not None]
    assert [choice.is_end for choice in choices] == [False, True]
    assert [one.chosen.bytes_latin1 for one in told] == ["a", ""]
    assert told[1].chosen.id == choices[1].token
    if is_post_sampling:
        assert told[1].chosen.logprob == 0.0


@pytest.mark.parametrize("num_top", [1, 20, 1000])
def test_what_sampling_left_is_told_in_order_and_without_what_is_impossible(
    backend: LlamaBackend, num_top: int
) -> None:
    random = np.random.default_rng(5)
    ids = random.permutation(3000).astype(np.int32)
    weights = random.integers(0, 40, len(ids)).astype(np.float32)
    probs = weights / weights.sum()
    told = probs_to_logprob(backend.model, ids % 300, probs, 7, b"", num_top).top
    order = np.argsort(-probs, kind="stable")[:num_top]
    order = order[probs[order] > 0]
    assert [one.id for one in told] == (ids[order] % 300).tolist()
    assert [one.logprob for one in told] == pytest.approx(np.log(probs[order]), abs=1e-4)


def say_and_judge(backend: LlamaBackend, best: dict[int, float], **fields: Any) -> TokenLogprob:
    """Have a sampler choose from a row, and tell how likely its choice was."""
    fields.setdefault("sampling", SamplingParams(temperature=0.0))
    sampler = backend.open_sampler(make_job(num_logprobs=1, **fields))
    row = np.zeros(backend.model.num_vocab, np.float32)
    for token, logit in best.items():
        row[token] = logit
    logprob = sampler.sample(row).logprob
    sampler.close()
    assert logprob is not None
    return logprob


def test_bytes_are_those_of_the_token_even_within_a_character(backend: LlamaBackend) -> None:
    rows = make_rows(backend, 1.0)[:2]
    entries = rows_to_logprobs(backend.model, rows, [3 + 0xC3, 3 + 0xA9], 0)
    assert b"".join(one.chosen.bytes_latin1.encode("latin-1") for one in entries) == "é".encode()
