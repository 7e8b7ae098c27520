"""What llama-server's clients look for beside the text, on a real model."""

import pytest

from tests.compat.conftest import RawClient
from tests.compat.test_clients_that_leave import num_told
from tests.live import CHAT_MODEL
from tests.processes import wait_until

pytestmark = pytest.mark.model
LONG = "The quick brown fox jumps over the lazy dog. " * 40


def test_a_stream_tells_its_pace_and_its_progress(raw: RawClient) -> None:
    body = {
        "prompt": LONG,
        "n_predict": 3,
        "ignore_eos": True,
        "stream": True,
        "timings_per_token": True,
        "return_progress": True,
        "cache_prompt": False,
    }
    frames = raw.post(f"/m/{CHAT_MODEL}/completion", **body).chunks
    told = [frame["prompt_progress"] for frame in frames if "prompt_progress" in frame]
    total = frames[-1]["tokens_evaluated"]
    assert told[0] == {"total": total, "cache": 0, "processed": 0, "time_ms": 0}
    assert told[-1]["processed"] == total
    times = [frame["timings"]["prompt_ms"] for frame in frames]
    assert times == sorted(times)
    assert [frame["timings"]["predicted_n"] for frame in frames[len(told) :]] == [1, 2, 3, 3]


def test_no_tokens_warm_the_cache(raw: RawClient) -> None:
    prompt = f"Only computed. {LONG}"
    first = raw.complete(prompt, n_predict=0)
    assert (first["content"], first["stop_type"]) == ("", "limit")
    assert first["timings"]["prompt_n"] == first["tokens_evaluated"]
    again = raw.complete(prompt, n_predict=1)
    assert again["timings"]["cache_n"] >= again["tokens_evaluated"] - 1


def test_an_unindented_line_ends_the_answer(raw: RawClient) -> None:
    grammar = r'root ::= "a\n  b\nc\n"'
    document = raw.complete("x", grammar=grammar, n_indent=2, n_predict=32)
    assert (document["content"], document["stop_type"]) == ("a\n  b\n", "limit")
    assert raw.complete("x", grammar=grammar, n_predict=32)["content"] == "a\n  b\nc\n"


def test_metrics_count_what_was_done(raw: RawClient) -> None:
    before = num_told(raw)
    raw.complete("One two", n_predict=5, ignore_eos=True)
    # Replicas tell their numbers once a second.
    wait_until(lambda: num_told(raw) >= before + 5, what="five tokens more")


def test_a_model_that_fills_no_gaps_says_so(raw: RawClient) -> None:
    body = {"input_prefix": "def f(", "input_suffix": "return x"}
    answer = raw.post(f"/m/{CHAT_MODEL}/infill", **body)
    assert (answer.status, answer.error["type"]) == (501, "not_supported_error")
