"""Grammars of tool calls: what each syntax lets through, and what wakes them."""

from typing import Any

import pytest

from inference.protocol.errors import EngineError
from inference.text.grammar import Budget
from inference.text.grammar.triggers import pattern_trigger, word_trigger
from inference.text.tool_grammar import (
    CallSyntax,
    Function,
    JsonCall,
    NamedCall,
    ParameterCall,
    Reasoning,
    ToolGrammar,
    make_tool_grammar,
    writes_text,
)
from tests.inference.text.json_schema.grammar_walk import accepts

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "integer", "minimum": 1},
    },
    "required": ["city"],
}
FUNCTIONS = [Function("weather", WEATHER), Function("time")]
HERMES = CallSyntax(
    JsonCall(),
    before="<tool_call>\n",
    after="\n</tool_call>",
    between="\n",
    trigger="<tool_call>",
    control_tokens=("<tool_call>", "</tool_call>"),
)
BARE = CallSyntax(JsonCall(arguments_key="parameters"))
MISTRAL = CallSyntax(
    JsonCall(id_key="id"), begin="[CALLS][", between=", ", end="]", trigger="[CALLS]"
)
COMMAND = CallSyntax(JsonCall("tool_name", "parameters", id_key="tool_call_id", is_id_first=True))
NAMED = CallSyntax(NamedCall("<function=", ">"), after="</function>", trigger="<function=")
KIMI = CallSyntax(
    NamedCall("<|call|>functions.", "<|args|>", ":"), after="<|end|>", trigger="<|call|>"
)
QWEN = CallSyntax(
    ParameterCall(),
    before="<tool_call>\n",
    after="</function>\n</tool_call>",
    trigger="<tool_call>",
)
THINK = Reasoning("<think>", "</think>")


def make(syntax: CallSyntax, functions: list[Function] = FUNCTIONS, **wish: Any) -> ToolGrammar:
    return make_tool_grammar(functions, syntax, **wish)


@pytest.mark.parametrize(
    ("syntax", "good", "bad"),
    [
        (
            HERMES,
            [
                '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
                (
                    '<tool_call>\n{"name":"time","arguments":{}}\n</tool_call>'
                    '\n<tool_call>\n{"name":"time","arguments":{}}\n</tool_call>'
                ),
            ],
            [
                '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>',
                '<tool_call>\n{"name": "rain", "arguments": {}}\n</tool_call>',
                '<tool_call>\n{"name": "time", "arguments": {"x": 1}}\n</tool_call>',
                '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>\nDone.',
                "",
            ],
        ),
        (BARE, ['{"name": "time", "parameters": {}}'], ['{"name": "time", "arguments": {}}']),
        (
            MISTRAL,
            [
                (
                    '[CALLS][{"name": "time", "arguments": {}, "id": "a1"}, '
                    '{"name": "time", "arguments": {}, "id": "b2"}]'
                )
            ],
            ['[CALLS][{"name": "time", "arguments": {}}]', "[CALLS][]"],
        ),
        (
            COMMAND,
            ['{"tool_call_id": "0", "tool_name": "time", "parameters": {}}'],
            ['{"tool_name": "time", "parameters": {}}'],
        ),
        (
            NAMED,
            ['<function=weather>{"city": "Oslo", "unit": "C"}</function>'],
            ["<function=time>{}", '<function=weather>{"unit": "C"}</function>'],
        ),
        (
            KIMI,
            ["<|call|>functions.time:0<|args|>{}<|end|>"],
            ["<|call|>functions.time<|args|>{}<|end|>"],
        ),
        (
            QWEN,
            [
                (
                    "<tool_call>\n<function=weather>\n<parameter=city>\nNew\n\n</York>\n</parameter>\n"
                    "<parameter=unit>\nC\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
                    "</function>\n</tool_call>"
                ),
                "<tool_call>\n<function=time>\n</function>\n</tool_call>",
            ],
            [
                "<tool_call>\n<function=weather>\n</function>\n</tool_call>",
                (
                    "<tool_call>\n<function=weather>\n<parameter=city>\nX\n</parameter>\n"
                    "<parameter=unit>\nK\n</parameter>\n</function>\n</tool_call>"
                ),
                (
                    "<tool_call>\n<function=weather>\n<parameter=city>\nX\n</parameter>\n"
                    "<parameter=days>\n0\n</parameter>\n</function>\n</tool_call>"
                ),
            ],
        ),
    ],
)
def test_calls_of_a_syntax(syntax: CallSyntax, good: list[str], bad: list[str]) -> None:
    grammar = make(syntax).grammar
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []


def test_only_one_call_where_they_are_not_parallel() -> None:
    call = '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>'
    made = make(HERMES, is_parallel=False)
    assert accepts(made.grammar, call)
    assert not accepts(made.grammar, f"{call}\n{call}")


@pytest.mark.parametrize(
    ("is_open", "good", "bad"),
    [
        (False, ["", "<think>a\n</thin</think>\n\n", "<think></think>"], ["so: ", "<think>a"]),
        (True, ["a <tool_call> b</think>\n", "</think>"], ["", "a"]),
    ],
)
def test_a_required_call_may_come_after_reasoning(
    is_open: bool, good: list[str], bad: list[str]
) -> None:
    reasoning = Reasoning("<think>", "</think>", is_open=is_open)
    made = make(NAMED, is_required=True, reasoning=reasoning)
    call = "<function=time>{}</function>"
    assert (made.is_lazy, made.triggers) == (False, ())
    assert made.preserved_tokens == ("<think>", "</think>")
    assert [text for text in good if not accepts(made.grammar, text + call)] == []
    assert [text for text in bad if accepts(made.grammar, text + call)] == []


def woken_at(made: ToolGrammar, text: str) -> int | None:
    """Give where the lazy grammar begins in a text that comes byte by byte."""
    assert made.is_lazy
    found = []
    for wish in made.triggers:
        trigger = word_trigger(wish.word) if wish.word else pattern_trigger(wish.pattern)
        progress, budget = trigger.start(), Budget(1_000_000)
        for position, byte in enumerate(text.encode()):
            progress, start = trigger.push(progress, bytes([byte]), position, budget)
            if start is not None:
                found.append(start)
                break
    return min(found, default=None)


@pytest.mark.parametrize(
    ("syntax", "reasoning", "text", "start"),
    [
        (HERMES, None, "Well: <tool_call>", 6),
        (HERMES, None, "Well: <tool_cell>", None),
        (HERMES, THINK, "<tool_call>", 0),
        (HERMES, THINK, "Well: <tool_call>", 6),
        (HERMES, THINK, " <thin <tool_call>", 7),
        (HERMES, THINK, "<think>a <tool_call>", None),
        (HERMES, THINK, "<think>a</think> b <tool_call>", 19),
        (HERMES, Reasoning("<think>", "</think>", is_open=True), "<tool_call>", None),
        (HERMES, Reasoning("<think>", "</think>", is_open=True), "</think><tool_call>", 8),
        (BARE, None, '\n{"name', None),
        (BARE, None, '\n{"name"', 1),
        (BARE, None, 'So: {"name"', None),
        (BARE, THINK, '<think>{"name"</think>{"name"', 22),
        (COMMAND, None, '{"tool_call_id"', 0),
    ],
)
def test_what_wakes_the_grammar(
    syntax: CallSyntax, reasoning: Reasoning | None, text: str, start: int | None
) -> None:
    assert woken_at(make(syntax, reasoning=reasoning), text) == start


def test_arguments_that_cannot_be_enforced() -> None:
    schema = {"type": "object", "properties": {"a": {"not": {"pattern": "x"}}}}
    whole = {"type": "object", "allOf": [{"not": {"multipleOf": 2}}]}
    made = make(HERMES, [Function("f", schema), Function("g", whole), *FUNCTIONS])
    assert made.unenforced == ("f", "g")
    assert accepts(made.grammar, '<tool_call>\n{"name":"f","arguments":{"a":[]}}\n</tool_call>')
    assert accepts(made.grammar, '<tool_call>\n{"name":"g","arguments":{"b":[]}}\n</tool_call>')
    with pytest.raises(EngineError, match="#/properties/a/not/pattern") as caught:
        make(HERMES, [Function("f", schema, is_strict=True, param="tools[0].parameters")])
    assert caught.value.param == "tools[0].parameters"
    made = make(QWEN, [Function("f", schema)])
    free = "<parameter=b>\nany\n</parameter>\n"
    call = f"<tool_call>\n<function=f>\n{free}</function>\n</tool_call>"
    assert accepts(made.grammar, call)


def test_only_what_cannot_be_enforced_of_arguments_is_let_through() -> None:
    names = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "names": names,
            "more": {"type": "object", "properties": {"a/b": {"$ref": "#/$defs/word"}}},
        },
        "required": ["id", "more"],
        "$defs": {"word": {"type": "string", "pattern": "(?=x)"}},
    }
    made = make(HERMES, [Function("f", schema)])
    assert made.unenforced == ("f",)

    def call(arguments: str) -> bool:
        text = f'<tool_call>\n{{"name":"f","arguments":{arguments}}}\n</tool_call>'
        return accepts(made.grammar, text)

    assert call('{"id":1,"names":["a","a"],"more":{"a/b":"y"}}')
    assert not call('{"id":"1","more":{}}')
    assert not call('{"names":[],"more":{}}')
    assert not call('{"id":1,"more":{"c":1}}')
    made = make(QWEN, [Function("f", schema)])
    assert accepts(made.grammar, "<tool_call>\n<function=f>\n</function>\n</tool_call>")


@pytest.mark.parametrize("syntax", [HERMES, QWEN])
def test_functions_that_are_too_much_together(syntax: CallSyntax) -> None:
    many = {f"p{i}": {"type": "string", "maxLength": i + 1} for i in range(40)}
    functions = [
        Function(
            f"f{at}", {"type": "object", "properties": {f"{at}{k}": v for k, v in many.items()}}
        )
        for at in range(100)
    ]
    made = make(syntax, functions)
    # As far as there is room, arguments are enforced.
    assert 50 < len(made.unenforced) < 100
    strict = [Function(one.name, one.parameters, is_strict=True) for one in functions]
    with pytest.raises(EngineError) as caught:
        make(syntax, strict)
    assert caught.value.param == "tools"


@pytest.mark.parametrize(
    ("schema", "is_text"),
    [
        ({"type": "string"}, True),
        ({"enum": ["a", "b"]}, True),
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [{"$ref": "#/$defs/s"}, {"type": "null"}]}, True),
        ({"type": ["string", "integer"]}, False),
        ({"type": "integer"}, False),
        ({"enum": ["a", 1]}, False),
        ({}, False),
        ({"$ref": "#/$defs/none"}, False),
        ({"$ref": "#/$defs/loop"}, False),
    ],
)
def test_which_arguments_are_written_as_text(schema: Any, is_text: bool) -> None:
    root = {"$defs": {"s": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}}}
    assert writes_text(schema, root) is is_text
