"""What a client reads is the same streamed or whole, and at every limit a beginning of the rest."""

import random

import pytest

from inference.backend.fake import BOS, FIRST_BYTE
from inference.protocol.events import FinishReason
from inference.text.detokenizer import Detokenizer
from tests.inference.engine.fakes import Bench, Outcome, make_job, say

PROMPT = "hello"
CHARACTERS = ["a", "b", "é", "漢", "🙂", "👩\u200d🚀", "e\u0301", "<stop>", "aé", "\n"]
BROKEN = [b"\x80", b"\xf0", b"\xf0\x9f", b"\xe6\xbc", b"\xff", b"\xc0\x80", b"\xed\xa0\x80"]


def made_answer(chooser: random.Random) -> bytes:
    """Mix characters of all lengths with bytes that are none."""
    pieces = [
        chooser.choice(BROKEN) if chooser.random() < 0.2 else chooser.choice(CHARACTERS).encode()
        for _ in range(chooser.randrange(1, 14))
    ]
    return b"".join(pieces)


def expected(data: bytes, stops: list[str]) -> tuple[str, bool]:
    """Decode what was written and cut it before its leftmost stop string."""
    text = Detokenizer().push(data)
    places = [at for stop in stops if (at := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def answer(data: bytes, stops: list[str], *, max_tokens: int, stream: bool) -> Outcome:
    bench = Bench(next_token=say(data, num_prompt=len(PROMPT)))
    job = make_job(prompt=PROMPT, max_tokens=max_tokens, stop=tuple(stops), stream=stream)
    return bench.answer(job)


@pytest.mark.parametrize("seed", range(15))
def test_streamed_and_whole_text_agree_at_every_limit(seed: int) -> None:
    chooser = random.Random(seed)
    data = made_answer(chooser)
    text = data.decode("utf-8", "replace")
    stops = chooser.sample(
        ["<stop>", "é漢", "aé", "\ufffd", "🙂", "\u0301", text[3:6] or "b"], chooser.randrange(3)
    )
    last = ""
    for limit in range(1, len(data) + 2):
        whole = answer(data, stops, max_tokens=limit, stream=False)
        streamed = answer(data, stops, max_tokens=limit, stream=True)
        assert streamed.text == whole.text
        assert streamed.token_ids == whole.token_ids
        assert streamed.done.finish_reason is whole.done.finish_reason
        cut, is_stopped = expected(data[:limit], stops)
        assert whole.text == cut
        assert (whole.done.finish_reason is FinishReason.STOP) == is_stopped
        if not is_stopped:
            assert whole.text.startswith(last)
            last = whole.text


@pytest.mark.parametrize("stream", [True, False])
def test_a_control_token_that_is_named_as_a_stop_string_stops(stream: bool) -> None:
    tokens = [FIRST_BYTE + byte for byte in b"say <"] + [BOS] + [FIRST_BYTE + 97] * 9
    bench = Bench(next_token=lambda sequence: tokens[len(sequence) - len(PROMPT)])
    job = make_job(prompt=PROMPT, max_tokens=9, stop=("<s>", "zz"), stream=stream)
    outcome = bench.answer(job)
    assert (outcome.text, outcome.done.stop_word) == ("say <", "<s>")
    bench = Bench(next_token=lambda sequence: tokens[len(sequence) - len(PROMPT)])
    outcome = bench.answer(make_job(prompt=PROMPT, max_tokens=9, stop=("zz",), stream=stream))
    assert outcome.text == "say <aaa"


def test_a_stop_string_over_several_tokens_never_shows() -> None:
    bench = Bench(next_token=say("abc END def", 5))
    outcome = bench.answer(make_job(max_tokens=32, stop=("END",)))
    assert outcome.text == "abc "
    assert outcome.done.finish_reason is FinishReason.STOP
    assert outcome.done.stop_word == "END"
    assert outcome.done.num_completion_tokens == 7


def test_text_held_for_a_stop_string_comes_at_the_end() -> None:
    for max_tokens in (9, 32):
        bench = Bench(next_token=say("total: EN", 5))
        assert bench.answer(make_job(max_tokens=max_tokens, stop=("END",))).text == "total: EN"


def test_a_stop_string_in_the_prompt_does_not_stop() -> None:
    assert Bench().answer(make_job(prompt="a STOP b", stop=("STOP",))).done.stop_word == ""


@pytest.mark.parametrize("stream", [True, False])
def test_a_limit_inside_a_character_drops_its_bytes(stream: bool) -> None:
    answer = "🧑‍🚀é"
    texts = []
    for limit in range(1, len(answer.encode()) + 1):
        bench = Bench(next_token=say(answer, 5))
        outcome = bench.answer(make_job(max_tokens=limit, stream=stream))
        texts.append(outcome.text)
        assert outcome.text == answer.encode()[:limit].decode("utf-8", "ignore")
        assert outcome.done.num_completion_tokens == limit
    assert texts[-1] == answer


def test_broken_bytes_become_replacement_characters_and_text_goes_on() -> None:
    bench = Bench(next_token=say(b"\x80\xf0\xf0 then", 5))
    assert bench.answer(make_job(max_tokens=50)).text == "\ufffd\ufffd\ufffd then"


def test_ignore_eos_goes_on_to_the_limit() -> None:
    bench = Bench(next_token=say("hi", 5))
    assert bench.answer(make_job(max_tokens=7, ignore_eos=True)).done.num_completion_tokens == 7


def test_min_tokens_delays_the_end() -> None:
    bench = Bench(next_token=say("hi", 5))
    assert bench.answer(make_job(max_tokens=50, min_tokens=6)).done.num_completion_tokens == 7


@pytest.mark.parametrize(
    ("num_min", "text"),
    [(0, "a"), (1, "a"), (2, "a.b"), (3, "a.b"), (4, "a.b.c"), (5, "a.b.c")],
)
def test_stop_strings_do_not_count_before_there_are_min_tokens(num_min: int, text: str) -> None:
    bench = Bench(next_token=say("a.b.c", 5))
    outcome = bench.answer(make_job(max_tokens=50, min_tokens=num_min, stop=(".",)))
    assert outcome.text == text
    assert outcome.done.num_completion_tokens >= num_min


def test_a_stop_string_that_begins_too_early_does_not_count() -> None:
    bench = Bench(next_token=say("aENDbEND", 5))
    assert bench.answer(make_job(max_tokens=50, min_tokens=2, stop=("END",))).text == "aENDb"
