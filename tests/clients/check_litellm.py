"""LiteLLM's ordinary calls, in OpenAI's dialect and in Anthropic's."""

import asyncio
import os
from typing import Any

import litellm
import pytest

URL, KEY = os.environ["LLAMERO_URL"], os.environ["LLAMERO_KEY"]
CHAT, EMBEDDING = os.environ["LLAMERO_CHAT"], os.environ["LLAMERO_EMBEDDING"]
HI = [{"role": "user", "content": "Say hello."}]
DIALECTS: list[dict[str, Any]] = [
    {"model": f"openai/{CHAT}", "api_base": f"{URL}/v1", "api_key": KEY},
    {"model": f"anthropic/{CHAT}", "api_base": URL, "api_key": KEY},
]


@pytest.mark.parametrize("dialect", DIALECTS, ids=["openai", "anthropic"])
def test_a_chat_is_answered(dialect: dict[str, Any]) -> None:
    answer = litellm.completion(messages=HI, max_tokens=8, temperature=0, **dialect)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens <= 8


@pytest.mark.parametrize("dialect", DIALECTS, ids=["openai", "anthropic"])
def test_a_stream_says_what_the_whole_answer_says(dialect: dict[str, Any]) -> None:
    asked = dialect | {"messages": HI, "max_tokens": 12, "temperature": 0}
    whole = litellm.completion(**asked).choices[0].message.content
    pieces = [
        part.choices[0].delta.content or "" for part in litellm.completion(stream=True, **asked)
    ]
    assert "".join(pieces) == whole


async def _ask() -> str:
    answer = await litellm.acompletion(messages=HI, max_tokens=4, **DIALECTS[0])
    return str(answer.choices[0].message.content)


def test_it_can_be_awaited() -> None:
    assert asyncio.run(_ask())


def test_texts_become_vectors() -> None:
    answer = litellm.embedding(
        model=f"openai/{EMBEDDING}", input=["one", "two"], api_base=f"{URL}/v1", api_key=KEY
    )
    assert [len(one["embedding"]) for one in answer.data] == [384, 384]


def test_errors_become_its_own() -> None:
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(messages=HI, **(DIALECTS[0] | {"api_key": "llm_wrong"}))
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(messages=HI, **(DIALECTS[0] | {"model": "openai/nothing"}))
    with pytest.raises(litellm.ContextWindowExceededError):
        long = [{"role": "user", "content": "word " * 9000}]
        litellm.completion(messages=long, **DIALECTS[0])
