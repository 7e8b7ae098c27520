"""llama-server's routes on a real model: budgets, stops, text and tokens."""

import itertools
from typing import Any

import pytest

from tests.compat.conftest import RawClient
from tests.live import EMBEDDING_MODEL

pytestmark = pytest.mark.model


def stream_text(raw: RawClient, **body: Any) -> str:
    chunks = raw.send("POST", "/completion", {"stream": True, **body}).chunks
    return "".join(chunk["content"] for chunk in chunks)


def test_budgets_are_exact(raw: RawClient) -> None:
    texts = []
    for budget in range(4):
        document = raw.complete("One two three", n_predict=budget, temperature=0, ignore_eos=True)
        assert document["tokens_predicted"] == budget
        assert document["stop_type"] == "limit"
        texts.append(document["content"])
    assert texts[0] == ""
    assert all(longer.startswith(shorter) for shorter, longer in itertools.pairwise(texts))


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("abc END def", ["END"], "abc "),
        ("abc END def", ["c EN"], "ab"),
        ("abc END def", ["d"], "abc END "),
        ("abc END def", [" END def"], "abc"),
        ("abc END def", ["END", "c END"], "ab"),
        ("total: EN", ["END"], "total: EN"),
        ("ENENENEND tail", ["END"], "ENENEN"),
        ("E EN ND END done", ["END done"], "E EN ND "),
        ("hello world", ["o w"], "hell"),
        ("hello world", ["h"], ""),
        ("🧑‍🚀é漢字", ["END"], "🧑‍🚀é漢字"),
    ],
)
def test_a_stop_cuts_exactly(raw: RawClient, text: str, stops: list[str], expected: str) -> None:
    body = {"prompt": "x", "grammar": f'root ::= "{text}"', "stop": stops, "n_predict": 64}
    assert raw.complete(**body)["content"] == expected
    assert stream_text(raw, **body) == expected


def test_a_grammar_that_cannot_be_read_is_400(raw: RawClient) -> None:
    for grammar in ('root ::= root "a"', "root ::= ", "a ::= b", "root ::= missing"):
        answer = raw.post("/completion", prompt="x", grammar=grammar, n_predict=4)
        assert (answer.status, answer.error["param"]) == (400, "grammar"), grammar
    assert raw.complete("x", n_predict=1)["tokens_predicted"] == 1


@pytest.mark.parametrize("text", [" leading", "a  b", "line\n  indented", "tab\tx", "é漢🎉"])
def test_tokens_and_text_are_the_same(raw: RawClient, text: str) -> None:
    tokens = raw.post("/tokenize", content=text).json()["tokens"]
    assert raw.post("/detokenize", tokens=tokens).json()["content"] == text


def test_special_tokens_are_parsed_and_added_as_asked(raw: RawClient) -> None:
    plain = raw.post("/tokenize", content="<|im_end|>", parse_special=False).json()["tokens"]
    assert len(plain) > 1
    assert 2 not in plain
    assert raw.post("/tokenize", content="<|im_end|>").json()["tokens"] == [2]
    options = {"content": "hi", "model": EMBEDDING_MODEL}
    framed = raw.post("/tokenize", **options, add_special=True).json()["tokens"]
    assert (framed[0], framed[-1]) == (101, 102)
    bare = raw.post("/tokenize", **options).json()["tokens"]
    assert 101 not in bare


@pytest.mark.parametrize("prompt", ["", "   ", "\x04", [49151]])
def test_odd_prompts_are_answered(raw: RawClient, prompt: Any) -> None:
    assert raw.complete(prompt, n_predict=2)["tokens_evaluated"] >= 1


def test_an_embedding_is_nested(raw: RawClient) -> None:
    document = raw.post("/embedding", content="hello").json()
    assert len(document[0]["embedding"][0]) == 384


@pytest.mark.parametrize(("num_words", "status"), [(510, 200), (511, 400), (2000, 400)])
def test_the_embedding_limit_is_told(raw: RawClient, num_words: int, status: int) -> None:
    answer = raw.post("/v1/embeddings", model=EMBEDDING_MODEL, input="word " * num_words)
    assert answer.status == status
    if status == 400:
        assert answer.error["n_ctx"] == 512


@pytest.mark.slow
def test_the_prompt_may_fill_the_context_but_for_one(raw: RawClient) -> None:
    n_ctx = raw.send("GET", "/props").json()["default_generation_settings"]["n_ctx"]
    fits = raw.complete([1000] * (n_ctx - 1), ignore_eos=True)
    assert (fits["tokens_predicted"], fits["stop_type"]) == (1, "limit")
    full = raw.post("/completion", prompt=[1000] * n_ctx)
    assert (full.status, full.error["type"]) == (400, "exceed_context_size_error")
    assert full.error["n_prompt_tokens"] == n_ctx


def test_health_needs_no_key(raw: RawClient) -> None:
    answer = raw.send("GET", "/health", Authorization="")
    assert (answer.status, answer.json()) == (200, {"status": "ok"})
