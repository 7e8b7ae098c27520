"""Every API once, through a whole running Llamero with real models."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.live import CHAT_MODEL, EMBEDDING_MODEL, LiveLlamero
from tests.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.model
QUESTION: Any = [{"role": "user", "content": "What is the capital of France? One word."}]


@pytest.fixture
def client(live_llamero: LiveLlamero) -> Iterator[openai.OpenAI]:
    """The official client, as it comes."""
    base_url = f"{live_llamero.base_url}/v1"
    with openai.OpenAI(base_url=base_url, api_key=live_llamero.api_key, max_retries=0) as client:
        yield client


def call_native(live: LiveLlamero, path: str, body: dict[str, Any]) -> Any:
    """Post to one of llama-server's addresses."""
    request = urllib.request.Request(
        live.base_url + path,
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {live.api_key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


def test_a_chat_is_answered(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=CHAT_MODEL, messages=QUESTION, temperature=0, max_tokens=24
    )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_streamed_chat_says_the_same(client: openai.OpenAI) -> None:
    plain = client.chat.completions.create(
        model=CHAT_MODEL, messages=QUESTION, temperature=0, max_tokens=24
    )
    chunks = list(
        client.chat.completions.create(
            model=CHAT_MODEL,
            messages=QUESTION,
            temperature=0,
            max_tokens=24,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == plain.choices[0].message.content
    assert chunks[-1].usage is not None
    assert plain.usage is not None
    assert chunks[-1].usage.completion_tokens == plain.usage.completion_tokens


def test_a_completion_is_answered_and_streamed(client: openai.OpenAI) -> None:
    prompt = "The capital of France is"
    plain = client.completions.create(model=CHAT_MODEL, prompt=prompt, temperature=0, max_tokens=8)
    chunks = client.completions.create(
        model=CHAT_MODEL, prompt=prompt, temperature=0, max_tokens=8, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in chunks) == plain.choices[0].text
    assert plain.choices[0].text


def test_embeddings_are_near_for_near_texts(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(
        model=EMBEDDING_MODEL,
        input=["How do I reset my password?", "I forgot my credentials.", "A cat sat on a mat."],
    )
    first, near, far = (entry.embedding for entry in answer.data)
    assert len(first) == 384
    assert cosine(first, near) > cosine(first, far) + 0.2


def cosine(one: list[float], other: list[float]) -> float:
    """Both have length one."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_models_are_listed_and_found(client: openai.OpenAI) -> None:
    assert {model.id for model in client.models.list()} == {CHAT_MODEL, EMBEDDING_MODEL}
    assert client.models.retrieve(CHAT_MODEL).id == CHAT_MODEL
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_without_a_key_nothing_but_health_is_answered(live_llamero: LiveLlamero) -> None:
    with urllib.request.urlopen(
        live_llamero.base_url + "/health", timeout=PATIENCE_SECONDS
    ) as answer:
        assert json.load(answer)["status"] == "ok"
    stranger = openai.OpenAI(
        base_url=f"{live_llamero.base_url}/v1", api_key="llm_00000000_" + "0" * 32, max_retries=0
    )
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_llama_servers_addresses_answer(live_llamero: LiveLlamero) -> None:
    text = "The capital of France is"
    model = {"model": CHAT_MODEL}
    tokens = call_native(live_llamero, "/tokenize", {"content": text, **model})["tokens"]
    back = call_native(live_llamero, "/detokenize", {"tokens": tokens, **model})["content"]
    assert back == text
    body = {"prompt": text, "n_predict": 8, "temperature": 0, **model}
    answer = call_native(live_llamero, "/completion", body)
    assert answer["content"]
    assert answer["stop"] is True
    vectors = call_native(live_llamero, "/embedding", {"content": "hi", "model": EMBEDDING_MODEL})
    assert vectors
