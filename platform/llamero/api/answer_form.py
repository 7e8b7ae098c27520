"""What form an answer must have: the grammar that a request's fields mean, one at most.

OpenAI, llama-server and vLLM each have fields of their own for it; all of them become a grammar.
"""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from inference.protocol.errors import EngineError
from inference.text.grammar import read_grammar
from inference.text.json_schema import schema_to_grammar
from inference.text.plain_forms import choices_to_grammar, pattern_to_grammar
from llamero.api.json_body import parse_json
from llamero.api.threads import compiling
from llamero.errors import InvalidValue, LlameroError, NotSupported

# Each grammar and what it is made from have at most 64 KiB.
_NUM_CACHED = 64
# vLLM's settings of its compilers, which change nothing here.
_HARMLESS = frozenset({"disable_fallback", "disable_any_whitespace", "backend"})


class AnswerForm(NamedTuple):
    """The grammar an answer must follow, and the field that asks for it; empty, it is free."""

    grammar: str = ""
    field: str = "grammar"


def read_answer_form(fields: Mapping[str, Any]) -> AnswerForm:
    """Read the form of an answer; raises LlameroError or EngineError."""
    forms = [(name, fields[name]) for name in _READERS if name in fields]
    forms = [(name, value) for name, value in forms if not _is_free(name, value)]
    if len(forms) > 1:
        raise InvalidValue(forms[0][0], f"Give either {forms[0][0]} or {forms[1][0]}, not both.")
    for name, value in forms:
        return AnswerForm(_READERS[name](value, name), name)
    return AnswerForm()


def _is_free(name: str, value: Any) -> bool:
    """Tell whether a field is there but asks for nothing."""
    if name == "response_format":
        return isinstance(value, dict) and value.get("type") == "text"
    return name in ("grammar", "guided_grammar") and value == ""


def _read_response_format(value: Any, param: str) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "json_object":
        schema = value.get("schema")
        return _read_schema({"type": "object"} if schema in (None, {}) else schema, param)
    if kind == "json_schema":
        return _read_schema(_find_schema(value), param)
    kinds = "text, json_object or json_schema"
    raise InvalidValue(param, f"{param} must be an object of type {kinds}.")


def _find_schema(value: dict[str, Any]) -> Any:
    """Give the schema of a format: OpenAI's place for it, or llama-server's."""
    holder = value.get("json_schema", value)
    if not isinstance(holder, dict) or holder.get("schema") is None:
        raise _invalid_format("response_format.json_schema must be an object with a schema.")
    name, strict = holder.get("name"), holder.get("strict")
    if name is not None and not isinstance(name, str):
        raise _invalid_format("response_format.json_schema.name must be a string.")
    if strict is not None and type(strict) is not bool:
        raise _invalid_format("response_format.json_schema.strict must be true or false.")
    return holder["schema"]


def _read_structured_outputs(value: Any, param: str) -> str:
    """Read vLLM's object: exactly one form in it."""
    if not isinstance(value, dict):
        raise InvalidValue(param, f"{param} must be an object.")
    given = {name: form for name, form in value.items() if form is not None and form is not False}
    unknown = given.keys() - _STRUCTURED.keys() - _HARMLESS
    if unknown:
        path = f"{param}.{min(unknown)}"
        raise NotSupported(path, f"{path[:128]} is not supported.")
    forms = [name for name in _STRUCTURED if name in given]
    if len(forms) != 1:
        names = " or ".join(forms) or ", ".join(_STRUCTURED)
        raise InvalidValue(param, f"{param} must have exactly one form: {names}.")
    path = f"{param}.{forms[0]}"
    return _STRUCTURED[forms[0]](given[forms[0]], path)


def _read_guided_schema(value: Any, param: str) -> str:
    """Read vLLM's schema, which may be the text of one."""
    if isinstance(value, str):
        try:
            value = parse_json(value.encode())
        except LlameroError:
            raise InvalidValue(param, f"{param} must be a JSON schema, in strict JSON.") from None
    return _read_schema(value, param)


def _read_json_object(value: Any, param: str) -> str:
    if value is not True:
        raise InvalidValue(param, f"{param} must be true or false.")
    return _read_schema({"type": "object"}, param)


def _read_schema(schema: Any, param: str) -> str:
    return _compile("json", json.dumps(schema), param)


def _read_pattern(pattern: Any, param: str) -> str:
    return _compile("regex", json.dumps(pattern), param)


def _read_choices(choices: Any, param: str) -> str:
    return _compile("choice", json.dumps(choices), param)


def _read_grammar(text: Any, param: str) -> str:
    return _compile("grammar", json.dumps(text), param)


@lru_cache(_NUM_CACHED)
def _compile(kind: str, text: str, param: str) -> str:
    """Make the grammar of a form that comes as JSON text."""
    with compiling:
        return _COMPILERS[kind](json.loads(text), param=param)


def _check_grammar(text: Any, *, param: str) -> str:
    if not isinstance(text, str):
        raise InvalidValue(param, f"{param} must be a string.")
    try:
        read_grammar(text)
    except EngineError as error:
        raise EngineError(error.code, error.message, param=param) from None
    return text


def _invalid_format(message: str) -> InvalidValue:
    return InvalidValue("response_format", message)


_COMPILERS: dict[str, Callable[..., str]] = {
    "json": schema_to_grammar,
    "regex": pattern_to_grammar,
    "choice": choices_to_grammar,
    "grammar": _check_grammar,
}
_STRUCTURED: dict[str, Callable[[Any, str], str]] = {
    "json": _read_guided_schema,
    "json_object": _read_json_object,
    "regex": _read_pattern,
    "choice": _read_choices,
    "grammar": _read_grammar,
}
# In the order in which two of them are named where both are given.
_READERS: dict[str, Callable[[Any, str], str]] = {
    "grammar": _read_grammar,
    "json_schema": _read_schema,
    "response_format": _read_response_format,
    "structured_outputs": _read_structured_outputs,
    "guided_json": _read_guided_schema,
    "guided_regex": _read_pattern,
    "guided_choice": _read_choices,
    "guided_grammar": _read_grammar,
}
