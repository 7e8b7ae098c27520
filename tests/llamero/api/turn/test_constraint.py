"""What a turn permits, and that its readers find in it what was permitted."""

import json
import re

import pytest

from inference.protocol.sampling import SamplingParams
from inference.text.grammar import read_grammar
from inference.text.json_schema import schema_to_grammar
from llamero.api.turn import CallMode, ReasoningWish, Tool, ToolUse, TurnFormat
from llamero.api.turn.plan import TurnPlan, plan_turn
from tests.llamero.api.turn.reading import calls_of, read, thoughts_of, words_of
from tests.llamero.api.turn.sentences import Sentences

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (Tool(name="get_weather", parameters=SCHEMA), Tool(name="now", parameters={}))
ANSWER = schema_to_grammar(
    {"type": "object", "properties": {"yes": {"type": "boolean"}}}, param="response_format"
)
HERMES = "{{ tools }}{{ tool_calls }}<tool_call>"
THINKING = HERMES + "<think></think>"
HARMONY = "{{ tools }}<|channel|><|message|>commentary"


def plan(
    template: str, mode: CallMode = CallMode.AUTO, *, is_enabled: bool | None = None
) -> TurnPlan:
    wish = ReasoningWish(is_enabled=is_enabled)
    return plan_turn(template, ToolUse(tools=TOOLS, mode=mode), wish)


def constrain(
    planned: TurnPlan, prompt: str = "", grammar: str = ""
) -> tuple[TurnFormat, SamplingParams]:
    turn = planned.turn_after(prompt)
    sampling = SamplingParams(grammar=grammar)
    return turn, planned.constrain(sampling, turn, has_prefill=False)


def test_without_tools_and_reasoning_nothing_changes() -> None:
    planned = plan_turn("{{ messages }}", ToolUse(), ReasoningWish())
    turn, sampling = constrain(planned, grammar=ANSWER)
    assert turn.is_plain
    assert sampling == SamplingParams(grammar=ANSWER)


@pytest.mark.parametrize("template", [HERMES, THINKING, HARMONY, "{{ messages }}"])
@pytest.mark.parametrize("prompt", ["", "<think>\n"])
@pytest.mark.parametrize("seed", range(3))
def test_required_means_calls(template: str, prompt: str, seed: int) -> None:
    turn, sampling = constrain(plan(template, CallMode.REQUIRED), prompt)
    assert not sampling.is_grammar_lazy
    pieces = read(turn, [Sentences(sampling.grammar, seed).make()])
    assert calls_of(pieces)
    assert words_of(pieces) == ""


@pytest.mark.parametrize("template", [HERMES, THINKING, HARMONY, "{{ messages }}"])
def test_auto_waits_for_a_call(template: str) -> None:
    _, sampling = constrain(plan(template))
    assert sampling.is_grammar_lazy
    assert sampling.grammar_triggers
    assert read_grammar(sampling.grammar)


@pytest.mark.parametrize("template", [HERMES, THINKING, HARMONY])
@pytest.mark.parametrize("seed", range(6))
def test_beside_tools_an_answer_has_its_form(template: str, seed: int) -> None:
    turn, sampling = constrain(plan(template), grammar=ANSWER)
    assert not sampling.is_grammar_lazy
    pieces = read(turn, [Sentences(sampling.grammar, seed).make()])
    words = words_of(pieces)
    assert bool(words) != bool(calls_of(pieces))
    assert not words or isinstance(json.loads(words), dict)


@pytest.mark.parametrize("prompt", ["", "<think>\n"])
@pytest.mark.parametrize("seed", range(3))
def test_the_form_of_an_answer_begins_behind_the_reasoning(prompt: str, seed: int) -> None:
    turn, sampling = constrain(plan(THINKING, CallMode.NONE), prompt, ANSWER)
    text = Sentences(sampling.grammar, seed).make()
    pieces = read(turn, [text])
    assert isinstance(json.loads(words_of(pieces)), dict)
    assert not prompt or "</think>" in text
    assert "</think>" not in thoughts_of(pieces)
    assert sampling.preserved_tokens == ("<think>", "</think>")


def test_who_must_not_reason_answers_at_once() -> None:
    planned = plan(THINKING, CallMode.NONE, is_enabled=False)
    _, sampling = constrain(planned, grammar=ANSWER)
    assert "<think>" not in sampling.grammar
    assert planned.closed_reasoning() == ("<think>", "</think>")
    assert planned.variables == {"enable_thinking": False, "thinking": False}


def test_grammars_are_joined_without_touching_what_looks_like_names() -> None:
    grammar = (
        'root ::= "root" [root] root2{1,2} # root\nroot2 ::= "\\"root2" | root2x\nroot2x ::= "x"'
    )
    _, sampling = constrain(plan(THINKING, CallMode.NONE), grammar=grammar)
    rules = read_grammar(sampling.grammar)
    assert {"answer", "answer-root2", "answer-root2x"} <= rules.keys()
    assert re.search(r'answer ::= "root" \[root\] answer-root2\{1,2\}', sampling.grammar)
