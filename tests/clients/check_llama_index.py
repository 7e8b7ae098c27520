"""llama-index's ordinary calls by its clients for servers like OpenAI's."""

import os

import pytest
from llama_index.core.llms import ChatMessage
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike

URL, KEY = os.environ["LLAMERO_URL"] + "/v1", os.environ["LLAMERO_KEY"]
CHAT, EMBEDDING = os.environ["LLAMERO_CHAT"], os.environ["LLAMERO_EMBEDDING"]


@pytest.fixture
def llm() -> OpenAILike:
    return OpenAILike(
        model=CHAT, api_base=URL, api_key=KEY, is_chat_model=True, max_tokens=12, temperature=0
    )


def test_a_chat_is_answered_and_streamed(llm: OpenAILike) -> None:
    talk = [ChatMessage(role="user", content="Say hello.")]
    whole = llm.chat(talk).message.content
    assert whole
    assert "".join(part.delta or "" for part in llm.stream_chat(talk)) == whole


def test_a_prompt_is_continued() -> None:
    llm = OpenAILike(
        model=CHAT, api_base=URL, api_key=KEY, is_chat_model=False, max_tokens=4, temperature=0
    )
    assert llm.complete("One two three").text


def test_texts_become_vectors() -> None:
    embedding = OpenAILikeEmbedding(model_name=EMBEDDING, api_base=URL, api_key=KEY)
    assert len(embedding.get_text_embedding("one")) == 384
    assert len(embedding.get_text_embedding_batch(["one", "two"])) == 2
