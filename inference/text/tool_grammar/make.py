"""The grammar of calls: of some functions, in one syntax."""

import re
from collections.abc import Sequence
from typing import Any

from inference.protocol.errors import EngineError, ErrorCode
from inference.protocol.sampling import GrammarTrigger
from inference.text.grammar.syntax import MAX_BYTES
from inference.text.grammar.writer import literal
from inference.text.json_schema.convert import Converter, schema_refused
from inference.text.json_schema.gbnf import BLANK, Grammar, json_text
from inference.text.json_schema.refusal import Refusal
from inference.text.json_schema.tries import any_beginning
from inference.text.tool_grammar.loosening import loosen
from inference.text.tool_grammar.parameters import ParameterWriter
from inference.text.tool_grammar.python_arguments import PythonWriter
from inference.text.tool_grammar.syntax import (
    CallSyntax,
    Function,
    JsonCall,
    NamedCall,
    ParameterCall,
    PythonCall,
    Reasoning,
    ToolGrammar,
)
from inference.text.tool_grammar.until import GAP, text_until

_ID = "[0-9A-Za-z]{1,24}"
# So much of a grammar that is too large is written before arguments are left unenforced.
_ROOM = MAX_BYTES * 3 // 4
# Each try but the first leaves one more part of a schema unenforced.
_MAX_TRIES = 8


def make_tool_grammar(
    functions: Sequence[Function],
    syntax: CallSyntax,
    *,
    is_required: bool = False,
    is_parallel: bool = True,
    reasoning: Reasoning | None = None,
    param: str = "tools",
) -> ToolGrammar:
    """Give the grammar of calls of these functions; raises EngineError about a function's param.

    The functions are those that may be called: just one where the client forces one. Where a call
    is required, the grammar holds from the first token on, after reasoning if there may be any;
    else it is lazy, and text is free until a call begins. A text ends with its calls: with one
    only, unless it is parallel.

    Making it may take a second or two (of many or hostile schemas; usually some milliseconds), so
    not in an event loop, and it is worth keeping. ``param`` is the field that errors about the
    grammar as a whole name.
    """
    # Together too large, those whose arguments need not be enforced are not: the last, then all.
    for room in (None, _ROOM, 0):
        try:
            return _Maker(syntax, room).make(functions, is_required, is_parallel, reasoning)
        except Refusal as refusal:
            problem = refusal.problem
    message = f"The functions are too much: their grammar {problem}."
    raise EngineError(ErrorCode.INVALID_GRAMMAR, message, param=param)


class _Maker:
    """Makes one grammar, with room for so many bytes of arguments that need not be enforced."""

    def __init__(self, syntax: CallSyntax, room: int | None) -> None:
        self._syntax, self._room = syntax, room
        self._grammar = Grammar()
        self._unenforced: set[str] = set()
        form = syntax.form
        self._parameters: ParameterWriter | PythonWriter | None = None
        if isinstance(form, ParameterCall):
            self._parameters = ParameterWriter(self._grammar, form)
        elif isinstance(form, PythonCall):
            self._parameters = PythonWriter(self._grammar)

    def make(
        self,
        functions: Sequence[Function],
        is_required: bool,
        is_parallel: bool,
        reasoning: Reasoning | None,
    ) -> ToolGrammar:
        """Make it; raises EngineError about a function, Refusal about all together."""
        syntax = self._syntax
        call = self._grammar.define(f"{literal(syntax.before)} {self._call(functions)}")
        call = self._grammar.define(f"{call} {literal(syntax.after)}")
        more = f"({literal(syntax.between)} {call})*" if is_parallel else '""'
        root = f"{literal(syntax.begin)} {call} {more} {literal(syntax.end)}"
        marks = (reasoning.start, reasoning.end) if reasoning else ()
        if is_required and reasoning:
            root = f"{self._thinking(reasoning)} {root}"
        return ToolGrammar(
            grammar=self._grammar.text(root),
            is_lazy=not is_required,
            triggers=() if is_required else _triggers(syntax, reasoning, functions),
            preserved_tokens=tuple(dict.fromkeys((*syntax.control_tokens, *marks))),
            unenforced=tuple(one.name for one in functions if one.name in self._unenforced),
        )

    def _call(self, functions: Sequence[Function]) -> str:
        form = self._syntax.form
        if isinstance(form, JsonCall):
            return self._json_call(form, functions)
        texts = {one.name: self._after_name(one) for one in functions}
        return f"{literal(form.before_name)} {any_beginning(self._grammar, texts)}"

    def _json_call(self, form: JsonCall, functions: Sequence[Function]) -> str:
        comma = f'"," {BLANK}'
        key = _key(form.arguments_key)
        texts = {
            json_text(one.name): self._grammar.define(f"{comma} {key} {self._arguments(one)}")
            for one in functions
        }
        named = f"{_key(form.name_key)} {any_beginning(self._grammar, texts)}"
        if form.id_key:
            quote = literal('"')
            named_id = f"{_key(form.id_key)} {quote} {_ID} {quote}"
            parts = [named_id, named] if form.is_id_first else [named, named_id]
            named = f" {comma} ".join(parts)
        return f'"{{" {BLANK} {named} "}}"'

    def _after_name(self, function: Function) -> str:
        form = self._syntax.form
        if isinstance(form, ParameterCall):
            return f"{literal(form.after_name)} {self._arguments(function)}"
        if isinstance(form, PythonCall):
            return f'"(" {self._arguments(function)} ")"'
        assert isinstance(form, NamedCall)
        number = f"{literal(form.before_number)} [0-9]{{1,3}}" if form.before_number else '""'
        return f"{number} {literal(form.before_arguments)} {self._arguments(function)}"

    def _arguments(self, function: Function) -> str:
        """Give the item of the arguments, of any where theirs need not and cannot be enforced."""
        has_room = self._room is None or self._grammar.num_bytes < self._room
        schema, num_tries = function.parameters, _MAX_TRIES if has_room else 0
        for _ in range(_MAX_TRIES if function.is_strict else num_tries):
            try:
                return self._enforced(schema)
            except (Refusal, RecursionError) as error:
                schema = self._loosened(function, schema, error)
            if schema is None:
                break
        self._unenforced.add(function.name)
        return self._parameters.unenforced() if self._parameters else "object"

    def _loosened(self, function: Function, schema: Any, error: Exception) -> Any:
        """Give a schema without what is refused of it; None where all of it would have to go."""
        refusal = error if isinstance(error, Refusal) else Refusal("#", "is too complex")
        if function.is_strict:
            raise schema_refused(refusal, function.param) from None
        self._unenforced.add(function.name)
        # Arguments that are written one by one are read by the schema as it is.
        return None if self._parameters else loosen(schema, refusal.pointer)

    def _enforced(self, schema: Any) -> str:
        if self._parameters:
            return self._parameters.arguments(schema)
        if schema is None:
            return '"{}"'
        if isinstance(schema, dict) and not schema.keys() & {"type", "$ref", "anyOf", "oneOf"}:
            schema = {"type": "object"} | schema
        if isinstance(schema, dict) and schema.get("type", "object") != "object":
            raise Refusal("#/type", "must be object, as arguments are")
        return Converter(schema, self._grammar).item()

    def _thinking(self, reasoning: Reasoning) -> str:
        rest = f"{text_until(self._grammar, reasoning.end)} {GAP}"
        return rest if reasoning.is_open else f"({literal(reasoning.start)} {rest})?"


def _key(name: str) -> str:
    return f"{literal(json_text(name) + ':')} {BLANK}"


def _triggers(
    syntax: CallSyntax, reasoning: Reasoning | None, functions: Sequence[Function]
) -> tuple[GrammarTrigger, ...]:
    """Give what wakes the lazy grammar: never within reasoning."""
    if not syntax.trigger:
        return _triggers_of_beginning(_beginning(syntax, functions), reasoning)
    if reasoning is None:
        return (GrammarTrigger(word=syntax.trigger),)
    found = f"({re.escape(syntax.trigger)})"
    beyond = _beyond(reasoning)
    if reasoning.is_open:
        return (GrammarTrigger(pattern=f"^{beyond}[\\s\\S]*{found}"),)
    return (
        GrammarTrigger(pattern=f"^\\s*{re.escape(reasoning.start)}{beyond}[\\s\\S]*{found}"),
        GrammarTrigger(pattern=f"^\\s*{found}"),
        GrammarTrigger(pattern=f"^\\s*{_unlike(reasoning.start)}[\\s\\S]*{found}"),
    )


def _beginning(syntax: CallSyntax, functions: Sequence[Function]) -> str:
    """Give the pattern of what calls without a mark begin with."""
    form, opening = syntax.form, re.escape(syntax.begin + syntax.before)
    if isinstance(form, PythonCall):
        names = "|".join(re.escape(one.name) for one in functions)
        return f"({opening}(?:{names})\\()"
    assert isinstance(form, JsonCall)
    key = form.id_key if form.is_id_first else form.name_key
    return f"({opening}\\{{[ \\n]?{re.escape(json_text(key))})"


def _triggers_of_beginning(found: str, reasoning: Reasoning | None) -> tuple[GrammarTrigger, ...]:
    """Give what wakes the grammar of calls without a mark: an answer that begins like one."""
    patterns = [] if reasoning and reasoning.is_open else [f"^\\s*{found}"]
    if reasoning:
        opened = "" if reasoning.is_open else f"\\s*{re.escape(reasoning.start)}"
        patterns.append(f"^{opened}{_beyond(reasoning)}\\s*{found}")
    return tuple(GrammarTrigger(pattern=pattern) for pattern in patterns)


def _beyond(reasoning: Reasoning) -> str:
    return f"[\\s\\S]*{re.escape(reasoning.end)}"


def _unlike(start: str) -> str:
    """Give the pattern of the first characters of a text that does not begin with a mark."""
    chars = [re.escape(char) for char in start]
    ways = [f"[^{chars[0]}\\s]"]
    ways += [f"{''.join(chars[:at])}[^{chars[at]}]" for at in range(1, len(chars))]
    return f"(?:{'|'.join(ways)})"
