"""Log-probabilities of prompts: echoed, scored without an answer, and as vLLM tells them."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest

from inference.protocol.events import (
    Candidate,
    Done,
    Event,
    FinishReason,
    PromptLogprobs,
    Started,
    TokenLogprob,
    Tokens,
)
from inference.protocol.jobs import GenerationJob
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import FakeDispatcher

URL = "/v1/completions"
OTHER = Candidate(9, "z", -3.0)


def entry(spelling: bytes, logprob: float = -1.0) -> TokenLogprob:
    chosen = Candidate(5, spelling.decode("latin-1"), logprob)
    return TokenLogprob(chosen, (chosen, OTHER))


def script(*pieces: bytes, answer: Sequence[bytes] = (b"!",), in_parts: int = 2) -> Any:
    """Judge a prompt of these pieces, then answer, for jobs that want it."""

    def play(job: GenerationJob) -> list[Event]:
        events: list[Event] = [Started(0, 0)]
        if job.num_prompt_logprobs is not None:
            judged = [TokenLogprob(Candidate(5, pieces[0].decode("latin-1"), 0.0), ())]
            judged += [entry(piece, -float(i)) for i, piece in enumerate(pieces[1:], start=1)]
            events += [
                PromptLogprobs(at, tuple(judged[at : at + in_parts]))
                for at in range(0, len(judged), in_parts)
            ]
        said = answer[: job.max_tokens]
        for piece in said:
            logprobs = (entry(piece, -0.5),) if job.num_logprobs is not None else ()
            events.append(Tokens(piece.decode(errors="replace"), (5,), logprobs))
        return [*events, Done(FinishReason.LENGTH, len(pieces), 0, len(said))]

    return play


async def test_scoring_gives_the_prompt_alone(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = script(b"a", b"b", b"c")
    body = {"model": "smol", "prompt": "abc", "echo": True, "max_tokens": 0, "logprobs": 1}
    document = (await post(URL, body)).json()
    (choice,) = document["choices"]
    assert choice["text"] == "abc"
    assert choice["finish_reason"] == "length"
    assert choice["logprobs"] == {
        "tokens": ["a", "b", "c"],
        "token_logprobs": [None, -1.0, -2.0],
        "top_logprobs": [None, {"b": -1.0}, {"c": -2.0}],
        "text_offset": [0, 1, 2],
    }
    assert document["usage"]["completion_tokens"] == 0
    (job,) = dispatcher.jobs
    assert (job.max_tokens, job.num_prompt_logprobs) == (0, 1)


async def test_an_answer_goes_on_where_the_prompt_ends(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = script(b"\xc3", b"\xa9", b"b", answer=("ü".encode(), b"!"))
    body = {"model": "smol", "prompt": "éb", "echo": True, "max_tokens": 2, "logprobs": 2}
    (choice,) = (await post(URL, body)).json()["choices"]
    assert choice["text"] == "ébü!"
    logprobs = choice["logprobs"]
    assert logprobs["text_offset"] == [0, 0, 1, 2, 3]
    assert logprobs["tokens"] == ["bytes:\\xc3", "bytes:\\xa9", "b", "ü", "!"]
    assert logprobs["token_logprobs"] == [None, -1.0, -2.0, -0.5, -0.5]
    assert logprobs["top_logprobs"][2] == {"b": -2.0, "z": -3.0}


@pytest.mark.parametrize(
    ("pieces", "text", "offsets"),
    [
        ((b"<s>", b"a", b"b"), "ab", [0, 0, 1]),
        ((b"<s>", b"a"), "<s>a", [0, 3]),
        ((b" a", b" b"), "a b", [0, 1]),
        ((b"<|im_start|>", b"x"), "<|im_start|>x", [0, 12]),
    ],
)
async def test_offsets_are_places_in_the_text(
    dispatcher: FakeDispatcher, pieces: tuple[bytes, ...], text: str, offsets: list[int]
) -> None:
    dispatcher.script = script(*pieces)
    body = {"model": "smol", "prompt": text, "echo": True, "max_tokens": 0, "logprobs": 0}
    (choice,) = (await post(URL, body)).json()["choices"]
    assert choice["logprobs"]["text_offset"] == offsets


@pytest.mark.parametrize(
    ("spellings", "offsets"),
    [
        ((b"\x80", b"a", b"b"), [0, 1, 2]),
        ((b"<s>", b"\xf0\x9f", b"\xff", b" a", b"b"), [0, 3, 3, 5, 7]),
        ((b"a", b"\xc3", b"\xa9", b"\xe2\x82"), [0, 1, 1, 2]),
    ],
)
async def test_offsets_count_bytes_that_are_no_text(
    dispatcher: FakeDispatcher, spellings: tuple[bytes, ...], offsets: list[int]
) -> None:
    dispatcher.script = script(*spellings)
    text = b"".join(spellings).decode(errors="replace")
    body = {"model": "smol", "prompt": text, "echo": True, "logprobs": 0}
    (choice,) = (await post(URL, body | {"max_tokens": 1})).json()["choices"]
    assert choice["logprobs"]["text_offset"] == [*offsets, len(choice["text"]) - 1]


async def test_an_empty_prompt_is_repeated_alike_whole_and_streamed(
    dispatcher: FakeDispatcher,
) -> None:
    dispatcher.script = script(b"<s>", answer=(b"!",))
    body = {"model": "smol", "prompt": "", "echo": True, "max_tokens": 1, "logprobs": 1}
    (whole,) = (await post(URL, body)).json()["choices"]
    chunks = (await post(URL, body | {"stream": True})).chunks
    told = [chunk["choices"][0]["logprobs"] for chunk in chunks if chunk["choices"][0]["logprobs"]]
    assert whole["text"] == "!"
    assert whole["logprobs"]["tokens"] == ["<s>", "!"]
    for name, values in whole["logprobs"].items():
        assert values == [value for one in told for value in one[name]]


async def test_the_chosen_token_has_one_name(dispatcher: FakeDispatcher) -> None:
    end = Candidate(2, "", -0.5)
    named = (Candidate(7, "a", -0.1), Candidate(2, "</s>", -0.5), Candidate(8, "a", -2.0))
    entries = (TokenLogprob(end, named), TokenLogprob(Candidate(8, "a", -2.0), named))
    dispatcher.script = lambda job: [
        Tokens("a", (2, 8), entries),
        Done(FinishReason.EOS, 1, 0, 2),
    ]
    body = {"model": "smol", "prompt": "x", "max_tokens": 2, "logprobs": 3}
    (choice,) = (await post(URL, body)).json()["choices"]
    first, second = choice["logprobs"]["top_logprobs"]
    assert first == {"a": -0.1, "": -0.5}
    assert second == {"a": -2.0, "</s>": -0.5}


@pytest.mark.parametrize("in_parts", [1, 2, 9])
async def test_a_stream_repeats_the_prompt_once_it_is_judged(
    dispatcher: FakeDispatcher, in_parts: int
) -> None:
    dispatcher.script = script(b"a", b"b", b"c", answer=(b"!", b"?"), in_parts=in_parts)
    body = {"model": "smol", "prompt": "abc", "echo": True, "max_tokens": 2, "logprobs": 1, "n": 2}
    whole = (await post(URL, body)).json()["choices"]
    chunks = (await post(URL, body | {"stream": True})).chunks
    assert {job.num_prompt_logprobs for job in dispatcher.jobs[:2]} == {1, None}
    for index in (0, 1):
        pieces = [one["choices"][0] for one in chunks if one["choices"][0]["index"] == index]
        assert "".join(piece["text"] for piece in pieces) == "abc!?"
        told = [piece["logprobs"] for piece in pieces if piece["logprobs"]]
        assert [len(one["tokens"]) for one in told] == [3, 1, 1]
        for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            joined = list(chain.from_iterable(one[name] for one in told))
            assert joined == whole[index]["logprobs"][name]


async def test_a_prompt_that_is_judged_again_is_repeated_once(dispatcher: FakeDispatcher) -> None:
    judged_once = script(b"a", b"b", b"c", answer=(b"!",), in_parts=3)

    def play(job: GenerationJob) -> list[Event]:
        told = list(judged_once(job))
        prompt = [event for event in told if isinstance(event, PromptLogprobs)]
        return [*prompt[:2], *told[:-1], *prompt, told[-1]]

    dispatcher.script = play
    body = {"model": "smol", "prompt": "abc", "echo": True, "max_tokens": 1, "logprobs": 1}
    (whole,) = (await post(URL, body)).json()["choices"]
    chunks = (await post(URL, body | {"stream": True})).chunks
    pieces = [one["choices"][0] for one in chunks]
    assert [piece["text"] for piece in pieces] == ["abc", "!", ""]
    assert [len(piece["logprobs"]["tokens"]) for piece in pieces[:2]] == [3, 1]
    assert whole["logprobs"]["tokens"] == ["a", "b", "c", "!"]


async def test_a_streamed_score_is_one_chunk_and_an_end(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = script(b"a", b"b")
    body = {"model": "smol", "prompt": "ab", "echo": True, "max_tokens": 0, "logprobs": 1}
    first, last = (await post(URL, body | {"stream": True})).chunks
    assert first["choices"][0]["text"] == "ab"
    assert first["choices"][0]["logprobs"]["token_logprobs"] == [None, -1.0]
    assert last["choices"][0]["finish_reason"] == "length"


async def test_many_prompts_are_scored_in_their_order(dispatcher: FakeDispatcher) -> None:
    def play(job: GenerationJob) -> list[Event]:
        return list(script(*(bytes([token]) for token in job.prompt_tokens))(job))

    dispatcher.script = play
    body = {"model": "smol", "prompt": [[65, 66], [67, 68, 69]], "echo": True, "logprobs": 1}
    document = (await post(URL, body | {"max_tokens": 1})).json()
    assert [one["logprobs"]["tokens"] for one in document["choices"]] == [
        ["A", "B", "!"],
        ["C", "D", "E", "!"],
    ]


async def test_best_of_judges_the_prompt_once(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = script(b"a", b"b")
    body = {"model": "smol", "prompt": "ab", "echo": True, "logprobs": 0, "best_of": 3, "n": 2}
    document = (await post(URL, body)).json()
    assert [job.num_prompt_logprobs for job in dispatcher.jobs] == [0, None, None]
    assert [one["logprobs"]["tokens"] for one in document["choices"]] == [["a", "b", "!"]] * 2
    assert document["usage"]["prompt_tokens"] == 2
    assert document["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (URL, {"prompt": "abc", "logprobs": 0, "echo": True}),
        (URL, {"prompt": "abc"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    ],
)
async def test_vllm_s_field_tells_ids_ranks_and_texts(
    dispatcher: FakeDispatcher, url: str, body: dict[str, Any]
) -> None:
    dispatcher.script = script(b"a", b"b", b"c")
    document = (await post(url, {"model": "smol", "prompt_logprobs": 2, **body})).json()
    told = document.get("prompt_logprobs") or document["choices"][0]["prompt_logprobs"]
    assert told[0] is None
    assert told[1] == {
        "5": {"logprob": -1.0, "rank": 1, "decoded_token": "b"},
        "9": {"logprob": -3.0, "rank": 2, "decoded_token": "z"},
    }
    assert len(told) == 3
    assert dispatcher.jobs[0].num_prompt_logprobs == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt_logprobs": 21},
        {"prompt_logprobs": -1},
        {"prompt_logprobs": True},
        {"prompt_logprobs": 1, "stream": True},
    ],
)
async def test_what_vllm_refuses_is_refused(
    dispatcher: FakeDispatcher, fields: dict[str, Any]
) -> None:
    answer = await post(URL, {"model": "smol", "prompt": "x", **fields})
    assert (answer.status, answer.error["param"]) == (400, "prompt_logprobs")
    assert dispatcher.jobs == []
