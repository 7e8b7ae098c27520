"""LangChain's ordinary calls by its client for OpenAI."""

import os

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from openai import BadRequestError

URL, KEY = os.environ["LLAMERO_URL"] + "/v1", os.environ["LLAMERO_KEY"]
CHAT, EMBEDDING = os.environ["LLAMERO_CHAT"], os.environ["LLAMERO_EMBEDDING"]
TALK = [SystemMessage("Be brief."), HumanMessage("Hi"), AIMessage("Hello."), HumanMessage("Again.")]


@pytest.fixture
def chat() -> ChatOpenAI:
    return ChatOpenAI(base_url=URL, api_key=KEY, model=CHAT, temperature=0, max_tokens=12)


def test_a_talk_is_answered(chat: ChatOpenAI) -> None:
    answer = chat.invoke(TALK)
    assert answer.content
    assert answer.usage_metadata["output_tokens"] <= 12


def test_a_stream_says_what_the_whole_answer_says(chat: ChatOpenAI) -> None:
    text = "".join(part.content for part in chat.stream(TALK))
    assert text == chat.invoke(TALK).content


def test_a_chain_and_a_batch(chat: ChatOpenAI) -> None:
    chain = ChatPromptTemplate.from_messages([("human", "Say {word}.")]) | chat
    answers = chain.batch([{"word": "yes"}, {"word": "no"}])
    assert all(answer.content for answer in answers)


def test_output_has_the_form_that_was_asked_for(chat: ChatOpenAI) -> None:
    schema = {
        "title": "Answer",
        "description": "An answer.",
        "type": "object",
        "properties": {"yes": {"type": "boolean"}},
        "required": ["yes"],
        "additionalProperties": False,
    }
    forced = chat.with_structured_output(schema, method="json_schema")
    assert isinstance(forced.invoke("Is water wet?")["yes"], bool)


def test_the_responses_api_is_used_where_wanted() -> None:
    chat = ChatOpenAI(base_url=URL, api_key=KEY, model=CHAT, use_responses_api=True)
    assert chat.bind(max_output_tokens=16).invoke("Say hello.").text


def test_a_prompt_is_continued() -> None:
    continued = OpenAI(base_url=URL, api_key=KEY, model=CHAT, max_tokens=4).invoke("One two three")
    assert continued


def test_texts_become_vectors() -> None:
    # By default it sends token ids of OpenAI's own vocabulary, which mean nothing here.
    embeddings = OpenAIEmbeddings(
        base_url=URL, api_key=KEY, model=EMBEDDING, check_embedding_ctx_length=False
    )
    assert [len(one) for one in embeddings.embed_documents(["one", "two"])] == [384, 384]


def test_an_overlong_talk_is_a_bad_request(chat: ChatOpenAI) -> None:
    with pytest.raises(BadRequestError) as caught:
        chat.invoke("word " * 9000)
    assert caught.value.code == "context_length_exceeded"
