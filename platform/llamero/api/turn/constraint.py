"""What a model may write in a turn: the grammar of calls, and of an answer behind the reasoning."""

import json
from functools import lru_cache

import msgspec

from inference.protocol.sampling import SamplingParams
from inference.text.grammar.joining import join_grammars
from inference.text.grammar.writer import literal
from inference.text.json_schema.gbnf import Grammar
from inference.text.tool_grammar import Function, Reasoning, ToolGrammar, make_tool_grammar
from inference.text.tool_grammar.until import GAP, text_until
from llamero.api.threads import compiling
from llamero.api.turn.call_styles import STYLE_OF_NAME
from llamero.api.turn.reasoning_styles import ReasoningStyle
from llamero.api.turn.tools import CallMode, ToolUse
from llamero.api.turn.turn_format import TurnFormat

_NUM_CACHED = 64


def constrain(
    sampling: SamplingParams, turn: TurnFormat, use: ToolUse, *, may_reason: bool
) -> SamplingParams:
    """Give the sampling parameters with what the turn adds to them; raises EngineError.

    A grammar that is there already is that of the answer, which comes after the reasoning, and
    instead of calls. Making a grammar of tools may take a second or two.
    """
    reasoning = turn.reasoning if may_reason or turn.is_reasoning_open else None
    marks = turn.reasoning.marks if turn.reasoning else ()
    tools = use.callable_tools
    has_answer = bool(sampling.grammar) and use.mode is not CallMode.REQUIRED
    chosen: dict[str, object] = {}
    if tools:
        must_call = use.mode is CallMode.REQUIRED or has_answer
        made = _make(
            turn.call_style,
            json.dumps([[t.name, t.parameters, t.is_strict, t.param] for t in tools]),
            must_call,
            use.is_parallel and STYLE_OF_NAME[turn.call_style].is_parallel,
            None if has_answer else _as_reasoning(reasoning, turn),
        )
        marks += made.preserved_tokens
        chosen["grammar"] = made.grammar
        chosen |= {"is_grammar_lazy": made.is_lazy, "grammar_triggers": made.triggers}
        chosen["grammar_field"] = sampling.grammar_field if has_answer else "tools"
    if has_answer and not sampling.is_grammar_lazy and (tools or reasoning):
        calls = str(chosen.get("grammar", ""))
        chosen["grammar"] = _join(sampling.grammar, calls, reasoning, turn.is_reasoning_open)
    preserved = tuple(dict.fromkeys((*sampling.preserved_tokens, *marks)))
    if not chosen and preserved == sampling.preserved_tokens:
        return sampling
    return msgspec.structs.replace(sampling, preserved_tokens=preserved, **chosen)


def _as_reasoning(style: ReasoningStyle | None, turn: TurnFormat) -> Reasoning | None:
    if style is None:
        return None
    return Reasoning(style.opening, style.closing, is_open=turn.is_reasoning_open)


@lru_cache(_NUM_CACHED)
def _make(
    style: str, tools: str, is_required: bool, is_parallel: bool, reasoning: Reasoning | None
) -> ToolGrammar:
    functions = [
        Function(name, parameters, is_strict=is_strict, param=param)
        for name, parameters, is_strict, param in json.loads(tools)
    ]
    with compiling:
        return make_tool_grammar(
            functions,
            STYLE_OF_NAME[style].syntax,
            is_required=is_required,
            is_parallel=is_parallel,
            reasoning=reasoning,
        )


@lru_cache(_NUM_CACHED)
def _join(answer: str, calls: str, reasoning: ReasoningStyle | None, is_open: bool) -> str:
    """Give the grammar of reasoning and then an answer, or calls instead where there are some."""
    parts = {"answer": answer}
    root = "answer"
    if reasoning and reasoning.before_answer:
        root = f"{literal(reasoning.before_answer)} {root}"
    if calls:
        parts["calls"] = calls
        root = f"({root} | calls)"
    if reasoning:
        thoughts = Grammar()
        rest = f"{text_until(thoughts, reasoning.closing)} {GAP}"
        whole = rest if is_open else f"{literal(reasoning.opening)} {rest}"
        parts["thoughts"] = thoughts.text(whole)
        root = f"thoughts {root}" if is_open else f"thoughts? {root}"
    return join_grammars(root, parts)
