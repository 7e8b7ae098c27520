"""Tools and reasoning in POST /v1/chat/completions, whole, streamed and resumed."""

import json
from typing import Any

import pytest

from inference.protocol.events import Done, FinishReason, Started, Tokens
from tests.llamero.api.asgi_client import Answer, post
from tests.llamero.api.fakes import FakeDispatcher, say
from tests.llamero.api.test_resuming import RESUMABLE, events_of, judge, resume

URL = "/v1/chat/completions"
HI = {"model": "smol", "messages": [{"role": "user", "content": "Weather in Oslo?"}]}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NOT_OBJECTS = {"name": "f", "parameters": {"type": "string"}}
FUNCTION = {"name": "get_weather", "description": "Tells.", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
HERMES = "{{ tools }}{{ message.tool_calls }}<tool_call>"
THINKING = HERMES + "{{ content.split('</think>') }}<think>{{ reasoning_content }}"
CALL = (
    "<tool_",
    'call>\n{"name": "get_',
    'weather", "arg',
    'uments": {"city',
    '": "Oslo"}}',
    "\n</tool_call>",
)
STREAM = {"stream": True, "stream_options": {"include_usage": True}}


def choice(answer: Answer) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    (one,) = answer.json()["choices"]
    return dict(one)


async def test_a_call_is_told(dispatcher: FakeDispatcher) -> None:
    dispatcher.chat_template = HERMES
    dispatcher.script = lambda job: say("Sure.\n", *CALL)
    told = choice(await post(URL, HI | {"tools": [TOOL]}))
    assert told["finish_reason"] == "tool_calls"
    (call,) = told["message"]["tool_calls"]
    assert told["message"]["content"] == "Sure."
    assert (call["type"], call["function"]["name"]) == ("function", "get_weather")
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}
    (question,) = dispatcher.questions
    assert question.tools == (TOOL,)
    sampling = dispatcher.jobs[0].sampling
    assert sampling.is_grammar_lazy
    assert [trigger.word for trigger in sampling.grammar_triggers] == ["<tool_call>"]
    assert "<tool_call>" in sampling.preserved_tokens


async def test_a_call_is_streamed(dispatcher: FakeDispatcher) -> None:
    dispatcher.chat_template = HERMES
    dispatcher.script = lambda job: say(*CALL)
    answer = await post(URL, HI | STREAM | {"tools": [TOOL], "tool_choice": "required"})
    *chunks, usage = answer.chunks
    choices = [chunk["choices"][0] for chunk in chunks]
    assert choices[0]["delta"] == {"role": "assistant", "content": None}
    (started,) = choices[1]["delta"]["tool_calls"]
    assert started["index"] == 0
    assert started["id"].startswith("call_")
    assert started["function"] == {"name": "get_weather", "arguments": ""}
    rest = [one["delta"]["tool_calls"][0] for one in choices[2:-1]]
    assert all(part.keys() == {"index", "function"} for part in rest)
    arguments = "".join(part["function"]["arguments"] for part in rest)
    assert json.loads(arguments) == {"city": "Oslo"}
    assert len(rest) > 1
    assert (choices[-1]["delta"], choices[-1]["finish_reason"]) == ({}, "tool_calls")
    assert [one["finish_reason"] for one in choices[:-1]] == [None] * (len(choices) - 1)
    assert usage["usage"]["completion_tokens"] == len(CALL)
    assert not dispatcher.jobs[0].sampling.is_grammar_lazy


async def test_a_call_that_is_cut_off_is_no_call_yet(dispatcher: FakeDispatcher) -> None:
    dispatcher.chat_template = HERMES
    dispatcher.script = lambda job: say(*CALL[:4], reason=FinishReason.LENGTH)
    told = choice(await post(URL, HI | {"tools": [TOOL], "tool_choice": NAMED}))
    assert told["finish_reason"] == "length"
    (call,) = told["message"]["tool_calls"]
    assert call["function"]["arguments"] == '{"city'
    dispatcher.script = lambda job: say(*CALL[:2], reason=FinishReason.LENGTH)
    told = choice(await post(URL, HI | {"tools": [TOOL], "tool_choice": NAMED}))
    assert (told["finish_reason"], told["message"]["content"]) == ("length", "")
    assert "tool_calls" not in told["message"]


async def test_without_a_call_there_are_words(dispatcher: FakeDispatcher) -> None:
    told = choice(await post(URL, HI | {"tools": [TOOL]}))
    assert told["message"] == {"role": "assistant", "content": "Hello", "refusal": None}
    assert told["finish_reason"] == "stop"
    told = choice(await post(URL, HI | {"tools": [TOOL], "tool_choice": "none"}))
    assert told["message"]["content"] == "Hello"
    assert dispatcher.questions[-1].tools == ()
    assert dispatcher.jobs[-1].sampling.grammar == ""


async def test_older_functions_are_called_in_their_way(dispatcher: FakeDispatcher) -> None:
    dispatcher.script = lambda job: say(
        '{"name": "get_weather", "arguments": {"city":', ' "Oslo"}}'
    )
    body = HI | {"functions": [FUNCTION], "function_call": {"name": "get_weather"}}
    told = choice(await post(URL, body))
    call = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    assert told["message"]["function_call"] == call
    assert told["finish_reason"] == "function_call"
    chunks = (await post(URL, body | {"stream": True})).chunks
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[1] == {"function_call": {"name": "get_weather", "arguments": ""}}
    assert chunks[-1]["choices"][0]["finish_reason"] == "function_call"


async def test_only_what_is_allowed_may_be_called(dispatcher: FakeDispatcher) -> None:
    other = {"type": "function", "function": {"name": "now"}}
    allowed = {"mode": "required", "tools": [other]}
    choices = {"type": "allowed_tools", "allowed_tools": allowed}
    await post(URL, HI | {"tools": [TOOL, other], "tool_choice": choices})
    assert len(dispatcher.questions[0].tools) == 2
    grammar = dispatcher.jobs[0].sampling.grammar
    assert "now" in grammar
    assert "get_weather" not in grammar


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"tools": ["x"]}, "tools[0]"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].type"),
        ({"tools": [{"function": FUNCTION}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [TOOL, TOOL]}, "tools[1].function.name"),
        ({"tools": [TOOL] * 129}, "tools"),
        ({"tools": [{"type": "function", "function": FUNCTION | {"strict": 1}}]},
         "tools[0].function.strict"),
        ({"tools": [{"type": "function", "function": FUNCTION | {"parameters": []}}]},
         "tools[0].function.parameters"),
        ({"tools": [{"type": "function", "function": NOT_OBJECTS}]},
         "tools[0].function.parameters.type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "x"}}},
         "tool_choice.function.name"),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}},
         "tool_choice.allowed_tools.mode"),
        ({"tools": [TOOL], "parallel_tool_calls": 1}, "parallel_tool_calls"),
        ({"tools": [TOOL], "functions": [FUNCTION]}, "functions"),
        ({"functions": [FUNCTION], "function_call": "required"}, "function_call"),
        ({"tools": [TOOL], "grammar": 'root ::= "a"'}, "grammar"),
        ({"reasoning_format": "deep"}, "reasoning_format"),
        ({"reasoning_effort": "most"}, "reasoning_effort"),
        ({"reasoning_budget": -2}, "reasoning_budget"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}},
         "chat_template_kwargs.enable_thinking"),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_named(
    dispatcher: FakeDispatcher, change: dict[str, Any], param: str
) -> None:
    answer = await post(URL, HI | change)
    assert (answer.status, answer.error["param"]) == (400, param)
    assert not dispatcher.jobs


async def test_a_strict_schema_must_be_one_that_can_be_enforced(dispatcher: FakeDispatcher) -> None:
    city = {"type": "string", "pattern": "^(?=O)"}
    odd = FUNCTION | {"parameters": {"type": "object", "properties": {"city": city}}}
    answer = await post(URL, HI | {"tools": [{"type": "function", "function": odd}]})
    assert answer.status == 200
    strict = {"type": "function", "function": odd | {"strict": True}}
    answer = await post(URL, HI | {"tools": [strict]})
    assert (answer.status, answer.error["param"]) == (400, "tools[0].function.parameters")


async def test_reasoning_is_told_apart(dispatcher: FakeDispatcher) -> None:
    dispatcher.chat_template = THINKING
    dispatcher.script = lambda job: say("<think>", "\nI see", ".\n", "</think>", "\n\n", "Rain.")
    answer = await post(URL, HI)
    message = choice(answer)["message"]
    assert (message["reasoning_content"], message["content"]) == ("I see.", "Rain.")
    usage = answer.json()["usage"]
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 4
    assert dispatcher.jobs[0].sampling.preserved_tokens == ("<think>", "</think>")
    chunks = (await post(URL, HI | STREAM)).chunks
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "I see."
    assert "".join(delta.get("content") or "" for delta in deltas) == "Rain."
    assert chunks[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"] == 4


async def test_reasoning_that_the_prompt_opens(dispatcher: FakeDispatcher) -> None:
    dispatcher.chat_template, dispatcher.prompt_end = THINKING, "<think>\n"
    dispatcher.script = lambda job: say("I see.", "</think>", "Rain.")
    message = choice(await post(URL, HI))["message"]
    assert (message["reasoning_content"], message["content"]) == ("I see.", "Rain.")
    message = choice(await post(URL, HI | {"reasoning_format": "none"}))["message"]
    assert message["content"] == "I see.</think>Rain."
    assert "reasoning_content" not in message


@pytest.mark.parametrize(
    ("fields", "variables", "is_over"),
    [
        ({}, {}, False),
        ({"reasoning_effort": "high"},
         {"reasoning_effort": "high", "enable_thinking": True, "thinking": True}, False),
        ({"reasoning_effort": "none"}, {"enable_thinking": False, "thinking": False}, True),
        ({"reasoning_budget": 0}, {"enable_thinking": False, "thinking": False}, True),
        ({"chat_template_kwargs": {"enable_thinking": False, "x": 1}},
         {"enable_thinking": False, "thinking": False, "x": 1}, True),
    ],
)  # fmt: skip
async def test_how_far_to_reason_is_for_the_template(
    dispatcher: FakeDispatcher, fields: dict[str, Any], variables: dict[str, Any], is_over: bool
) -> None:
    dispatcher.chat_template = THINKING
    assert (await post(URL, HI | fields)).status == 200
    (question,) = dispatcher.questions
    assert question.template_kwargs == variables
    assert (question.no_reasoning is not None) == is_over


async def test_logprobs_are_those_of_all_tokens(dispatcher: FakeDispatcher) -> None:
    dispatcher.chat_template = HERMES
    events = [Tokens(text, (i,), (judge(text),)) for i, text in enumerate(CALL)]
    dispatcher.script = lambda job: [
        Started(slot=0, num_cached_tokens=0),
        *events,
        Done(FinishReason.EOS, 5, 0, len(CALL)),
    ]
    answer = await post(URL, HI | {"tools": [TOOL], "logprobs": True, "stream": True})
    told = [chunk["choices"][0]["logprobs"] for chunk in answer.chunks]
    assert sum(len(one["content"]) for one in told if one) == len(CALL)


async def test_a_stream_with_calls_and_reasoning_goes_on_after_any_event(
    dispatcher: FakeDispatcher,
) -> None:
    dispatcher.chat_template = THINKING
    dispatcher.script = lambda job: say("<think>", "I see.", "</think>", "So:\n", *CALL)
    whole = await post(URL, HI | STREAM | {"tools": [TOOL]}, headers=RESUMABLE)
    events, run = events_of(whole), whole.headers["x-llamero-run"]
    assert b"tool_calls" in whole.body
    for number in range(len(events) + 1):
        assert events_of(await resume(run, str(number) if number else "")) == events[number:]
