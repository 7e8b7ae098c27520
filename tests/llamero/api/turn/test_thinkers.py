"""Models that think, from their templates to the answers of every API."""

import json
from typing import Any

import pytest

from inference.protocol.events import FinishReason
from inference.protocol.replicas import ModelFacts
from inference.protocol.text import RenderChat
from inference.text.chat_template import ChatTemplate
from inference.text.render_child import Renderer
from tests.llamero.api.asgi_client import Answer, post
from tests.llamero.api.fakes import FACTS, FakeDispatcher, say
from tests.llamero.api.turn.thinkers import THINKERS, Thinker

HI = [{"role": "user", "content": "Hi"}]
CHAT: dict[str, Any] = {"model": "smol", "messages": HI}
MESSAGE: dict[str, Any] = {
    "model": "smol",
    "messages": HI,
    "max_tokens": 50,
    "thinking": {"type": "adaptive"},
}
RESPONSE: dict[str, Any] = {"model": "smol", "input": "Hi", "store": False}
Told = tuple[str, str, str]
THINKING = {name: one for name, one in THINKERS.items() if one.written != "Hi"}


class Vocabulary:
    """A token for each character; none of them controls anything."""

    def __init__(self, template: str) -> None:
        self._facts = ModelFacts(chat_template=template)

    def facts(self) -> ModelFacts:
        return self._facts

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        return [ord(letter) for letter in text]

    def control_tokens(self) -> dict[str, int]:
        return {}


@pytest.fixture
def thinker(request: pytest.FixtureRequest, dispatcher: FakeDispatcher) -> Thinker:
    """A family whose template is really rendered."""
    one: Thinker = THINKERS[request.param]
    template = ChatTemplate(Vocabulary(one.template), Renderer())  # type: ignore[arg-type]
    ask = dispatcher.ask

    async def render(deployment: str, question: Any, **options: Any) -> Any:
        await ask(deployment, question)
        assert isinstance(question, RenderChat)
        return template.render(question)

    dispatcher.ask = render  # type: ignore[method-assign]
    dispatcher.chat_template = one.template
    dispatcher.model_facts = FACTS
    return one


def every(thinkers: dict[str, Thinker]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("thinker", thinkers, indirect=True)


def write(dispatcher: FakeDispatcher, text: str, **options: Any) -> None:
    """Have the model write a text, three characters at a time."""
    pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
    dispatcher.script = lambda job: say(*pieces, **options)


async def ask_chat() -> Told:
    """Give thoughts, words and why it ended; a stream tells the same."""
    (choice,) = (await post("/v1/chat/completions", CHAT)).json()["choices"]
    message = choice["message"]
    told = (message.get("reasoning_content", ""), message["content"], choice["finish_reason"])
    answer = await post("/v1/chat/completions", CHAT | {"stream": True})
    choices = [one for chunk in answer.chunks for one in chunk["choices"]]
    deltas = [one["delta"] for one in choices]
    assert told == (
        "".join(delta.get("reasoning_content", "") for delta in deltas),
        "".join(delta.get("content") or "" for delta in deltas),
        choices[-1]["finish_reason"],
    )
    return told


async def ask_message() -> Told:
    whole = (await post("/v1/messages", MESSAGE)).json()
    told = "".join(block.get("thinking", "") for block in whole["content"])
    words = "".join(block.get("text", "") for block in whole["content"])
    answer = await post("/v1/messages", MESSAGE | {"stream": True})
    deltas = [event["delta"] for event in answer.chunks if "delta" in event]
    assert told == "".join(delta.get("thinking", "") for delta in deltas)
    assert words == "".join(delta.get("text", "") for delta in deltas)
    reason = {"end_turn": "stop", "max_tokens": "length"}[whole["stop_reason"]]
    return told, words, reason


async def ask_response() -> Told:
    whole = (await post("/v1/responses", RESPONSE)).json()
    told = _parts(whole, "reasoning"), _parts(whole, "message")
    answer: Answer = await post("/v1/responses", RESPONSE | {"stream": True})
    last = answer.chunks[-1]["response"]
    assert told == (_parts(last, "reasoning"), _parts(last, "message"))
    reason = {"completed": "stop", "incomplete": "length"}[whole["status"]]
    return *told, reason


def _parts(response: dict[str, Any], kind: str) -> str:
    items = [item for item in response["output"] if item["type"] == kind]
    return "".join(part["text"] for item in items for part in item["content"])


every_api = pytest.mark.parametrize("ask", [ask_chat, ask_message, ask_response])


@every(THINKING)
@every_api
async def test_thoughts_are_told_apart_from_words(
    dispatcher: FakeDispatcher, thinker: Thinker, ask: Any
) -> None:
    write(dispatcher, thinker.written)
    assert await ask() == ("Hm.", "Hi", "stop")
    counted = dispatcher.jobs[-1].reasoning
    assert counted is not None


@every(THINKING)
@every_api
async def test_a_thought_that_is_cut_off_is_a_thought(
    dispatcher: FakeDispatcher, thinker: Thinker, ask: Any
) -> None:
    write(dispatcher, thinker.unfinished, reason=FinishReason.LENGTH)
    assert await ask() == ("Hm", "", "length")


@every(THINKERS)
async def test_the_prompt_ends_as_was_wished(dispatcher: FakeDispatcher, thinker: Thinker) -> None:
    for wish, end in (
        ({}, thinker.opened),
        ({"reasoning_effort": "none"}, thinker.closed),
        ({"chat_template_kwargs": {"enable_thinking": False}}, thinker.closed),
        ({"reasoning_budget": 0}, thinker.closed),
    ):
        answer = await post("/apply-template", CHAT | wish)
        assert answer.json()["prompt"].endswith(end), wish


@every(THINKERS)
async def test_who_is_not_to_think_answers(dispatcher: FakeDispatcher, thinker: Thinker) -> None:
    write(dispatcher, "Hi" if "gpt" not in thinker.template else "<|channel|>final<|message|>Hi")
    answer = await post("/v1/chat/completions", CHAT | {"reasoning_effort": "none"})
    assert answer.json()["choices"][0]["message"]["content"] == "Hi", json.dumps(answer.json())
