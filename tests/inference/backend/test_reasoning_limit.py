"""Reasoning ends at its limit, and not before."""

import numpy as np
import pytest

from inference.backend.base import Row
from inference.backend.llama import LlamaBackend
from inference.protocol.sampling import ReasoningLimit, SamplingParams
from tests.inference.backend.jobs import make_job


def limit(max_tokens: int, *, is_open: bool = True) -> ReasoningLimit:
    return ReasoningLimit(
        opening="<t>", closing="</t>", ending="</t>\n", max_tokens=max_tokens, is_open=is_open
    )


def row_of(text: str, backend: LlamaBackend) -> Row:
    """Make logits that want the token of a byte."""
    row = np.zeros(backend.model.num_vocab, np.float32)
    row[backend.model.tokenize(text, add_special=False, parse_special=False)[-1]] = 9
    return row


def write(backend: LlamaBackend, wanted: str, reasoning: ReasoningLimit, grammar: str = "") -> str:
    """Sample while the model wants one character after the other; gives what came of it."""
    sampling = SamplingParams(temperature=0, reasoning_limit=reasoning, grammar=grammar)
    sampler = backend.open_sampler(make_job(sampling=sampling))
    data = b""
    for char in wanted:
        choice = sampler.sample(row_of(char, backend))
        data += b"" if choice.is_end else backend.model.text_bytes(choice.token)
    sampler.close()
    return data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("wanted", "max_tokens", "is_open", "written"),
    [
        ("aaaaaaaaaa", 3, True, "aaa</t>\na"),
        ("aaaaaaaaaa", 0, True, "</t>\naaaa"[:10]),
        ("a</t>bbbbb", 5, True, "a</t>bbbbb"),
        ("<t>aaaaaaaaa", 2, False, "<t>aa</t>\naa"[:12]),
        ("aaaaaaa", 2, False, "aaaaaaa"),
        ("  <t>aaaaaaaa", 1, False, "  <t>a</t>\nab"[:12]),
    ],
)
def test_the_closing_mark_comes_in_time(
    backend: LlamaBackend, wanted: str, max_tokens: int, is_open: bool, written: str
) -> None:
    told = write(backend, wanted, limit(max_tokens, is_open=is_open))
    assert told.startswith(written[:-1])


def test_a_grammar_goes_on_behind_it(backend: LlamaBackend) -> None:
    grammar = 'root ::= [^<]* "</t>\\n" "yes"'
    assert write(backend, "aaaaaaaaaaaaa", limit(2), grammar) == "aa</t>\nyes"


def test_an_earlier_attempt_counts(backend: LlamaBackend) -> None:
    sampling = SamplingParams(temperature=0, reasoning_limit=limit(2))
    sampler = backend.open_sampler(make_job(sampling=sampling))
    for char in "aa<":
        sampler.accept(backend.model.tokenize(char, add_special=False, parse_special=False)[-1])
    data = b""
    for _ in range(4):
        data += backend.model.text_bytes(sampler.sample(row_of("a", backend)).token)
    sampler.close()
    assert data == b"/t>\n"
