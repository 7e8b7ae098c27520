"""The unmodified openai client, doing what its users do."""

from typing import Any

import openai
import pytest

pytestmark = pytest.mark.model
HI: Any = [{"role": "user", "content": "Hi"}]


def test_a_chat_is_answered(client: openai.OpenAI, chat_model: str) -> None:
    answer = client.chat.completions.create(model=chat_model, messages=HI, max_tokens=8)
    assert answer.object == "chat.completion"
    assert answer.model == chat_model
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert 1 <= answer.usage.completion_tokens <= 8
    total = answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.total_tokens == total
    assert answer._request_id


def test_a_stream_says_what_the_whole_answer_says(client: openai.OpenAI, chat_model: str) -> None:
    options: Any = {"model": chat_model, "messages": HI, "temperature": 0, "max_tokens": 24}
    whole = client.chat.completions.create(**options)
    chunks = list(
        client.chat.completions.create(
            **options, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:-1])
    assert len({(c.id, c.created, c.model) for c in chunks}) == 1
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_prompts_are_continued(client: openai.OpenAI, chat_model: str) -> None:
    prompts = ["The capital of France is", "One two three"]
    both = client.completions.create(model=chat_model, prompt=prompts, max_tokens=4, temperature=0)
    assert [choice.index for choice in both.choices] == [0, 1]
    for prompt, choice in zip(prompts, both.choices, strict=True):
        alone = client.completions.create(
            model=chat_model, prompt=prompt, max_tokens=4, temperature=0
        )
        assert alone.choices[0].text == choice.text


def test_a_completion_is_streamed(client: openai.OpenAI, chat_model: str) -> None:
    stream = client.completions.create(
        model=chat_model, prompt="One two", max_tokens=5, temperature=0, stream=True
    )
    chunks = list(stream)
    assert {chunk.object for chunk in chunks} == {"text_completion"}
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")


def test_texts_become_vectors(client: openai.OpenAI, embedding_model: str) -> None:
    answer = client.embeddings.create(model=embedding_model, input=["a cat", "a kitten", "tax law"])
    cat, kitten, tax = [one.embedding for one in answer.data]
    assert len(cat) == 384
    assert _dot(cat, cat) == pytest.approx(1.0, abs=1e-3)
    assert _dot(cat, kitten) > _dot(cat, tax)
    plain = client.embeddings.create(model=embedding_model, input="a cat", encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(cat, abs=1e-3)
    assert answer.usage.total_tokens == answer.usage.prompt_tokens > 0


def test_models_are_listed(client: openai.OpenAI, chat_model: str, embedding_model: str) -> None:
    listed = list(client.models.list())
    assert {chat_model, embedding_model} <= {model.id for model in listed}
    model = client.models.retrieve(chat_model)
    assert (model.id, model.object) == (chat_model, "model")
    assert model.created == next(one.created for one in listed if one.id == chat_model)


def test_errors_become_the_clients_own(client: openai.OpenAI, chat_model: str) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="no-such-model", messages=HI)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        client.chat.completions.create(model=chat_model, messages=[], stream=True)
    assert wrong.value.param == "messages"
    with pytest.raises(openai.AuthenticationError) as refused:
        client.with_options(api_key="llm_wrong").models.list()
    assert refused.value.code == "invalid_api_key"


@pytest.mark.parametrize("stream", [False, True])
def test_an_overlong_prompt_is_a_bad_request(
    client: openai.OpenAI, chat_model: str, stream: bool
) -> None:
    messages: Any = [{"role": "user", "content": "word " * 9000}]
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=chat_model, messages=messages, stream=stream)
    assert caught.value.code == "context_length_exceeded"


def test_logprobs_spell_the_answer(client: openai.OpenAI, chat_model: str) -> None:
    answer = client.chat.completions.create(
        model=chat_model,
        messages=[{"role": "user", "content": "Count: one two"}],
        logprobs=True,
        top_logprobs=3,
        max_tokens=8,
        temperature=0,
    )
    choice = answer.choices[0]
    assert choice.logprobs is not None
    assert choice.logprobs.content is not None
    raw = b"".join(bytes(one.bytes or ()) for one in choice.logprobs.content)
    assert raw.decode(errors="ignore").startswith(choice.message.content or "")
    assert all(len(one.top_logprobs) == 3 for one in choice.logprobs.content)
    assert all(one.logprob <= 0 for one in choice.logprobs.content)


def test_a_seed_repeats_an_answer(client: openai.OpenAI, chat_model: str) -> None:
    def ask(seed: int | None) -> str | None:
        answer = client.chat.completions.create(
            model=chat_model, messages=HI, temperature=1.5, seed=seed, max_tokens=12
        )
        return answer.choices[0].message.content

    assert ask(42) == ask(42)
    assert ask(42) != ask(43)
    assert ask(0) == ask(0)


def test_choices_differ_and_are_repeated_by_a_seed(client: openai.OpenAI, chat_model: str) -> None:
    options: Any = {"model": chat_model, "messages": HI, "n": 3, "temperature": 1, "seed": 3}
    whole = client.chat.completions.create(**options, max_tokens=5)
    texts = {choice.index: choice.message.content for choice in whole.choices}
    assert len(texts) == 3
    streamed = dict.fromkeys(texts, "")
    ends = []
    for chunk in client.chat.completions.create(**options, max_tokens=5, stream=True):
        choice = chunk.choices[0]
        streamed[choice.index] += choice.delta.content or ""
        ends += [choice.index] if choice.finish_reason else []
    assert sorted(ends) == [0, 1, 2]
    assert len(set(streamed.values())) > 1


def test_a_request_that_is_sent_twice_is_answered_once(
    client: openai.OpenAI, chat_model: str
) -> None:
    options: Any = {"model": chat_model, "messages": HI, "temperature": 1.5, "max_tokens": 8}
    named = {"extra_headers": {"Idempotency-Key": "twice", "X-Request-Id": "mine"}}
    first, second = (client.chat.completions.create(**options, **named) for _ in range(2))
    assert first == second
    assert first._request_id == "mine"
    with pytest.raises(openai.UnprocessableEntityError) as reused:
        client.chat.completions.create(**options, **named, seed=1)
    assert reused.value.code == "idempotency_key_reused"
    streams = [
        [
            (chunk.id, chunk.choices[0].delta.content)
            for chunk in client.chat.completions.create(
                **options, stream=True, extra_headers={"Idempotency-Key": "streamed"}
            )
        ]
        for _ in range(2)
    ]
    assert streams[0] == streams[1]


def _dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
