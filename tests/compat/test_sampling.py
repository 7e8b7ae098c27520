"""Sampling, seeds, choices and log-probabilities, as clients meet them."""

from typing import Any

import openai
import pytest

from tests.compat.conftest import RawClient
from tests.live import CHAT_MODEL

pytestmark = pytest.mark.model

STORY = "Once upon a time there was a"


def complete(raw: RawClient, **fields: Any) -> dict[str, Any]:
    answer = raw.post("/v1/completions", **{"model": CHAT_MODEL, "prompt": STORY, **fields})
    assert answer.status == 200, answer.body
    document: dict[str, Any] = answer.json()
    return document


def test_a_prompt_is_scored_without_an_answer(client: openai.OpenAI, chat_model: str) -> None:
    prompt = "The capital of France is Paris."
    scored = client.completions.create(
        model=chat_model, prompt=prompt, echo=True, max_tokens=0, logprobs=1
    )
    choice = scored.choices[0]
    logprobs = choice.logprobs
    assert choice.text == prompt
    assert logprobs is not None
    assert logprobs.tokens is not None
    assert logprobs.token_logprobs is not None
    assert logprobs.top_logprobs is not None
    assert logprobs.text_offset is not None
    assert "".join(logprobs.tokens) == prompt
    assert logprobs.token_logprobs[0] is None
    assert all(-50 < logprob <= 0 for logprob in logprobs.token_logprobs[1:])
    paris = next(i for i, token in enumerate(logprobs.tokens) if "Paris" in token)
    assert logprobs.token_logprobs[paris] == max(logprobs.top_logprobs[paris].values())
    assert [prompt[at] for at in logprobs.text_offset] == [token[0] for token in logprobs.tokens]
    assert scored.usage is not None
    assert (scored.usage.prompt_tokens, scored.usage.completion_tokens) == (len(logprobs.tokens), 0)


def test_an_echo_joins_prompt_and_answer_whole_or_streamed(raw: RawClient) -> None:
    fields = {"echo": True, "logprobs": 2, "max_tokens": 4, "temperature": 0}
    (whole,) = complete(raw, **fields)["choices"]
    logprobs = whole["logprobs"]
    assert "".join(logprobs["tokens"]) == whole["text"]
    assert {len(values) for values in logprobs.values()} == {len(logprobs["tokens"])}
    streamed = raw.post(
        "/v1/completions", model=CHAT_MODEL, prompt=STORY, stream=True, **fields
    ).chunks
    pieces = [chunk["choices"][0] for chunk in streamed]
    assert "".join(piece["text"] for piece in pieces) == whole["text"]
    told = [piece["logprobs"] for piece in pieces if piece["logprobs"]]
    assert [token for one in told for token in one["tokens"]] == logprobs["tokens"]
    assert [at for one in told for at in one["text_offset"]] == logprobs["text_offset"]


@pytest.mark.parametrize("logprobs", [0, 2, 5])
def test_legacy_logprobs_are_lists_of_equal_length(raw: RawClient, logprobs: int) -> None:
    (choice,) = complete(raw, logprobs=logprobs, max_tokens=3, temperature=0)["choices"]
    told = choice["logprobs"]
    assert {len(told[name]) for name in told} == {3}
    assert {len(top) for top in told["top_logprobs"]} == {max(1, logprobs)}
    for token, logprob, top in zip(
        told["tokens"], told["token_logprobs"], told["top_logprobs"], strict=True
    ):
        assert top[token] == logprob


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/completion", {"prompt": "x", "n_probs": 2147483647, "n_predict": 1}, "n_probs"),
        ("/completion", {"prompt": "x", "n_probs": -1, "n_predict": 1}, "n_probs"),
        ("/completion", {"prompt": "x", "plugins": [{"name": "none"}]}, "plugins[0].name"),
        ("/completion", {"prompt": "x", "logit_bias": [["x", 1e9]]}, "logit_bias"),
        ("/v1/completions", {"prompt": "x", "best_of": 2, "n": 3}, "best_of"),
        ("/v1/completions", {"prompt": "x", "prompt_logprobs": 99}, "prompt_logprobs"),
    ],
)
def test_a_wrong_value_names_its_field(
    raw: RawClient, path: str, fields: dict[str, Any], param: str
) -> None:
    answer = raw.post(path, **{"model": CHAT_MODEL, **fields})
    assert (answer.status, answer.error["param"]) == (400, param)


def test_bytes_spell_the_answer_without_the_tokenizers_alphabet(raw: RawClient) -> None:
    fields = {"logprobs": True, "top_logprobs": 20, "max_tokens": 8, "temperature": 0}
    (choice,) = raw.chat(**fields).json()["choices"]
    entries = choice["logprobs"]["content"]
    spelled = bytes(byte for entry in entries for byte in entry["bytes"])
    assert spelled.decode() == choice["message"]["content"]
    shown = [one["token"] for entry in entries for one in (entry, *entry["top_logprobs"])]
    assert not any(letter in token for token in shown for letter in "ĠĊ▁")
    assert all(len(entry["top_logprobs"]) == 20 for entry in entries)
    (alone,) = raw.chat(logprobs=True, max_tokens=1).json()["choices"]
    assert [entry["top_logprobs"] for entry in alone["logprobs"]["content"]] == [[]]


def test_a_seed_repeats_its_text_whatever_came_between(raw: RawClient) -> None:
    def say(**fields: Any) -> str:
        text: str = complete(raw, temperature=1.5, max_tokens=12, **fields)["choices"][0]["text"]
        return text

    first = say(seed=42)
    others = [say(), say(), say(seed=43)]
    assert say(seed=42) == first
    assert len({first, *others}) == 4
    assert say(seed=0) == say(seed=0)


def test_a_random_seed_is_told_and_repeats_the_text(raw: RawClient) -> None:
    fields = {"n_predict": 12, "temperature": 1.2}
    told = raw.complete(STORY, **fields)
    again = raw.complete(STORY, seed=told["generation_settings"]["seed"], **fields)
    assert again["content"] == told["content"]


def test_the_first_of_many_choices_is_the_only_one_of_one(raw: RawClient) -> None:
    fields = {"seed": 7, "temperature": 1.0, "max_tokens": 8}
    alone = complete(raw, **fields)
    many = complete(raw, n=4, **fields)
    texts = [choice["text"] for choice in many["choices"]]
    assert texts[0] == alone["choices"][0]["text"]
    assert len(set(texts)) == 4
    assert texts == [choice["text"] for choice in complete(raw, n=4, **fields)["choices"]]
    assert many["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"]
    assert many["usage"]["completion_tokens"] == 32
    streamed = [""] * 4
    answer = raw.post("/v1/completions", model=CHAT_MODEL, prompt=STORY, n=4, stream=True, **fields)
    for chunk in answer.chunks:
        choice = chunk["choices"][0]
        streamed[choice["index"]] += choice["text"]
    assert streamed == texts


def test_the_best_of_many_is_the_likeliest(raw: RawClient) -> None:
    fields = {"seed": 7, "temperature": 1.3, "max_tokens": 6, "logprobs": 0}

    def likelihood(choice: dict[str, Any]) -> float:
        logprobs: list[float] = choice["logprobs"]["token_logprobs"]
        return sum(logprobs) / len(logprobs)

    tried = complete(raw, n=4, **fields)["choices"]
    best = complete(raw, n=2, best_of=4, **fields)
    expected = sorted(tried, key=likelihood, reverse=True)[:2]
    assert [choice["text"] for choice in best["choices"]] == [one["text"] for one in expected]
    assert best["usage"]["completion_tokens"] == 24


def test_biases_on_texts_force_and_ban(raw: RawClient) -> None:
    forced = raw.complete(STORY, n_predict=3, logit_bias=[[" dragon", 100]])
    assert forced["content"] == " dragon" * 3
    (bias,) = forced["generation_settings"]["logit_bias"]
    assert bias["bias"] == 100
    free = raw.complete(STORY, n_predict=1, temperature=0)["content"]
    banned = raw.complete(STORY, n_predict=1, temperature=0, logit_bias={free: False})["content"]
    assert banned != free


def test_the_end_is_banned_until_enough_was_said(raw: RawClient) -> None:
    fields = {"temperature": 0, "max_tokens": 40, "logit_bias": {"2": 100}}
    assert raw.chat(**fields).json()["usage"]["completion_tokens"] == 1
    assert raw.chat(min_tokens=6, **fields).json()["usage"]["completion_tokens"] == 7
    assert raw.chat(ignore_eos=True, **fields).json()["usage"]["completion_tokens"] == 40


@pytest.mark.parametrize(
    "fields",
    [
        {"mirostat": 1},
        {"mirostat": 2, "mirostat_tau": 2.0},
        {"adaptive_target": 0.3},
        {"samplers": "tkypm", "typical_p": 0.7},
        {"samplers": ["xtc", "temperature"], "xtc_probability": 1.0},
        {"dry_multiplier": 0.8, "dry_sequence_breakers": ["\n", "é"]},
        {"dynatemp_range": 0.5, "top_n_sigma": 1.0, "min_keep": 3},
        {"repeat_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.5},
    ],
)
def test_every_sampler_gives_the_same_again(raw: RawClient, fields: dict[str, Any]) -> None:
    answers = [raw.complete(STORY, n_predict=8, seed=3, **fields) for _ in range(2)]
    assert answers[0]["content"] == answers[1]["content"]
    assert answers[0]["tokens_predicted"] == 8
