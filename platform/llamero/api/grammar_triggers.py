"""llama-server's fields of a lazy grammar: what wakes it, and which control tokens it may use."""

from collections.abc import Mapping
from typing import Any

from inference.protocol.sampling import GrammarTrigger
from inference.text.grammar.triggers import MAX_TRIGGERS, pattern_trigger
from llamero.errors import InvalidValue

MAX_WORD_CHARS = 1024
MAX_PRESERVED = 64
# llama-server's numbers of the kinds, and their names.
_KINDS = ("token", "word", "pattern", "pattern_full")


def read_lazy_grammar(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Give the sampling parameters that these fields mean."""
    preserved = _read_preserved(fields.get("preserved_tokens", []))
    chosen: dict[str, Any] = {"preserved_tokens": preserved, "grammar_triggers": ()}
    if not fields.get("grammar_lazy", False):
        return chosen
    triggers = fields.get("grammar_triggers", [])
    if not isinstance(triggers, list) or not 0 < len(triggers) <= MAX_TRIGGERS:
        raise _bad(f"grammar_triggers must be a list of 1 to {MAX_TRIGGERS} for a lazy grammar.")
    return chosen | {
        "is_grammar_lazy": True,
        "grammar_triggers": tuple(_read_trigger(one, i) for i, one in enumerate(triggers)),
    }


def _read_trigger(value: Any, index: int) -> GrammarTrigger:
    path = f"grammar_triggers[{index}]"
    if not isinstance(value, dict):
        raise _bad(f"{path} must be an object of type and value.")
    kind = value.get("type")
    if type(kind) is int and 0 <= kind < len(_KINDS):
        kind = _KINDS[kind]
    if kind == "token":
        token = value.get("token")
        if type(token) is not int or not 0 <= token < 2**31:
            raise _bad(f"{path}.token must be a token id.")
        return GrammarTrigger(token=token)
    if kind not in _KINDS:
        raise _bad(f"{path}.type must be one of {', '.join(_KINDS)}, or llama-server's number.")
    text = value.get("value")
    if not isinstance(text, str) or not 0 < len(text) <= MAX_WORD_CHARS:
        raise _bad(f"{path}.value must be a string of 1 to {MAX_WORD_CHARS} characters.")
    if kind == "word":
        return GrammarTrigger(word=text)
    pattern = text if kind == "pattern" else f"^{text.removeprefix('^').removesuffix('$')}$"
    pattern_trigger(pattern)
    return GrammarTrigger(pattern=pattern)


def _read_preserved(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InvalidValue("preserved_tokens", "preserved_tokens must be a list of strings.")
    if len(value) > MAX_PRESERVED:
        problem = f"preserved_tokens must hold at most {MAX_PRESERVED} strings."
        raise InvalidValue("preserved_tokens", problem)
    return tuple(value)


def _bad(message: str) -> InvalidValue:
    return InvalidValue("grammar_triggers", message)
