"""Characters made of several tokens, bytes that make none, and stops within them."""

from typing import Any

import pytest

from tests.compat.conftest import RawClient
from tests.live import CHAT_MODEL

pytestmark = pytest.mark.model
ASTRONAUTS = "🧑‍🚀🧑‍🚀🧑‍🚀"


def whole_and_streamed(raw: RawClient, **body: Any) -> list[str]:
    """Give a completion whole, and in the pieces of its stream."""
    fields = {"model": CHAT_MODEL, "temperature": 0, **body}
    answer = raw.post("/v1/completions", **fields)
    assert answer.status == 200, answer.body
    chunks = raw.post("/v1/completions", **fields, stream=True).chunks
    pieces = [chunk["choices"][0]["text"] for chunk in chunks]
    whole: str = answer.json()["choices"][0]["text"]
    assert "".join(pieces) == whole
    return [whole, *pieces]


def test_characters_of_several_tokens_are_never_cut(raw: RawClient) -> None:
    assert "\ufffd" not in whole_and_streamed(raw, prompt="🎉🎉🎉🎉🎉🎉🎉🎉", max_tokens=16)[0]


def test_a_limit_within_a_character_drops_its_part(raw: RawClient) -> None:
    texts = []
    for limit in (1, 2, 3, 5, 8, 12):
        body = {"grammar": f'root ::= "{ASTRONAUTS}"', "n_predict": limit, "temperature": 0}
        document = raw.complete("x", **body)
        assert (document["tokens_predicted"], document["stop_type"]) == (limit, "limit")
        texts.append(document["content"])
        if limit == 3:
            chunks = raw.post(f"/m/{CHAT_MODEL}/completion", prompt="x", stream=True, **body).chunks
            assert "".join(chunk["content"] for chunk in chunks) == texts[-1]
    assert all(ASTRONAUTS.startswith(text) for text in texts)
    assert texts == sorted(texts, key=len)


def test_a_longer_answer_begins_with_every_shorter_one(raw: RawClient) -> None:
    prompt, texts = "السلام عليكم ورحمة", [""]
    for limit in range(1, 6):
        body = {"model": CHAT_MODEL, "prompt": prompt, "max_tokens": limit, "temperature": 0}
        texts.append(raw.post("/v1/completions", **body).json()["choices"][0]["text"])
        assert texts[-1].startswith(texts[-2])
    assert whole_and_streamed(raw, prompt=prompt, max_tokens=5)[0] == texts[5]


@pytest.mark.parametrize(("token", "expected"), [("218", "\ufffd" * 5), ("187", "\ufffd" * 4)])
def test_bytes_that_are_no_text_come_as_replacement_characters(
    raw: RawClient, token: str, expected: str
) -> None:
    body = {"prompt": "x", "max_tokens": 5, "logit_bias": {token: 100}}
    assert whole_and_streamed(raw, **body)[0] == expected


def test_text_goes_on_after_bytes_that_are_none(raw: RawClient) -> None:
    prompt = "ÿþ 🎉 \ufffd then more text:"
    assert whole_and_streamed(raw, prompt=prompt, max_tokens=8)[0]


def test_noise_is_valid_json_and_unicode(raw: RawClient) -> None:
    body = {"model": CHAT_MODEL, "prompt": "\u0378", "temperature": 2, "max_tokens": 24, "n": 2}
    document = raw.post("/v1/completions", **body, seed=5, logprobs=5, top_k=0).json()
    for choice in document["choices"]:
        choice["text"].encode()
        assert len(choice["logprobs"]["tokens"]) == len(choice["logprobs"]["token_logprobs"])
    pieces = raw.post("/tokenize", content="\u0378🎉", with_pieces=True).json()["tokens"]
    spelled = b"".join(
        bytes(one["piece"]) if isinstance(one["piece"], list) else one["piece"].encode()
        for one in pieces
    )
    assert spelled.decode() == "\u0378🎉"


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [("hello world", "l", "he"), ("abc END def", "END", "abc "), ("ENENEND x", "END", "ENEN")],
)
def test_no_piece_holds_a_part_of_what_stops(
    raw: RawClient, text: str, stop: str, expected: str
) -> None:
    body = {"prompt": "x", "max_tokens": 24, "grammar": f'root ::= "{text}"', "stop": [stop]}
    assert whole_and_streamed(raw, **body)[0] == expected
    answer = raw.post("/v1/completions", model=CHAT_MODEL, **body).json()
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] >= 1
    message = raw.post(
        "/v1/messages",
        model=CHAT_MODEL,
        messages=[{"role": "user", "content": "Hi"}],
        max_tokens=24,
        grammar=body["grammar"],
        stop_sequences=[stop],
    ).json()
    assert (message["content"][0]["text"], message["stop_reason"]) == (expected, "stop_sequence")


def test_only_what_is_generated_stops(raw: RawClient) -> None:
    body = {"prompt": "a STOP b", "stop": ["STOP"], "max_tokens": 4, "echo": True}
    assert whole_and_streamed(raw, **body)[0].startswith("a STOP b")
    for stop in (["<|im_end|>"], ["\n"]):
        choice = raw.chat(stop=stop, max_tokens=12, temperature=0).json()["choices"][0]
        assert not any(word in choice["message"]["content"] for word in stop)
        assert choice["finish_reason"] in ("stop", "length")
