"""How likely tokens were, against a plain computation."""

import numpy as np
import pytest

from inference.backend.base import Rows
from inference.backend.llama import LlamaBackend
from inference.backend.logprobs import (
    IMPOSSIBLE,
    first_token,
    logits_to_logprob,
    rows_to_logprobs,
)


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
    assert logits_to_logprob(backend.model, row, 70, 0).chosen.logprob == IMPOSSIBLE


def test_control_tokens_have_a_name_in_prompts_and_no_text_in_answers(
    backend: LlamaBackend,
) -> None:
    rows = make_rows(backend, 1.0)[:1]
    (prompt,) = rows_to_logprobs(backend.model, rows, [2], 0)
    answer = logits_to_logprob(backend.model, rows[0], 2, 0)
    assert (prompt.chosen.bytes_latin1, answer.chosen.bytes_latin1) == ("</s>", "")
    assert first_token(backend.model, 1).chosen.bytes_latin1 == "<s>"


def test_bytes_are_those_of_the_token_even_within_a_character(backend: LlamaBackend) -> None:
    rows = make_rows(backend, 1.0)[:2]
    entries = rows_to_logprobs(backend.model, rows, [3 + 0xC3, 3 + 0xA9], 0)
    assert b"".join(one.chosen.bytes_latin1.encode("latin-1") for one in entries) == "é".encode()
