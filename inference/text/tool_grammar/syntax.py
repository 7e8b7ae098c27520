"""How a model writes calls of functions: the fixed text around names and arguments.

A text with calls is ``begin``, then each call as ``before``, the form's own text and ``after``,
with ``between`` from one call to the next, then ``end``. For example:

    Hermes, Qwen 2.5   CallSyntax(JsonCall(), before="<tool_call>\\n", after="\\n</tool_call>",
                       between="\\n", trigger="<tool_call>", control_tokens=("<tool_call>", …))
    bare JSON          CallSyntax(JsonCall(arguments_key="parameters"))
    Mistral            CallSyntax(JsonCall(), begin="[TOOL_CALLS][", between=", ", end="]",
                       trigger="[TOOL_CALLS]", control_tokens=("[TOOL_CALLS]",))
    Functionary        CallSyntax(NamedCall("<function=", ">"), after="</function>",
                       trigger="<function=")
    Qwen3-Coder        CallSyntax(ParameterCall(), before="<tool_call>\\n",
                       after="</function>\\n</tool_call>", between="\\n", trigger="<tool_call>", …)
    Llama 3.2, 4       CallSyntax(PythonCall(), begin="[", between=", ", end="]")
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from inference.protocol.sampling import GrammarTrigger


@dataclass(frozen=True, slots=True)
class JsonCall:
    """A JSON object of name and arguments: ``{"name": "f", "arguments": {…}}``.

    With an ``id_key`` the object also has an id of up to 24 letters and digits, behind the
    arguments or, where ``is_id_first``, before the name.
    """

    name_key: str = "name"
    arguments_key: str = "arguments"
    id_key: str = ""
    is_id_first: bool = False


@dataclass(frozen=True, slots=True)
class NamedCall:
    """The name as it is, then the arguments as a JSON object: ``<function=f>{…}``.

    Where ``before_number`` is given, it and a call's number stand behind the name: ``f:0``.
    """

    before_name: str = ""
    before_arguments: str = ""
    before_number: str = ""


@dataclass(frozen=True, slots=True)
class ParameterCall:
    """The name as it is, then each argument by itself; the defaults are Qwen3-Coder's.

    An argument whose schema allows texts, and nothing else but null, is written as it is, without
    quotes (see ``writes_text``); any other is written as JSON.
    """

    before_name: str = "<function="
    after_name: str = ">\n"
    before_key: str = "<parameter="
    after_key: str = ">\n"
    after_value: str = "\n</parameter>\n"


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A call as Python has it: ``f(a=1, b="x")``; values are JSON's, or True, False and None."""

    before_name: str = ""


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """How calls are written: see above.

    ``trigger`` is the beginning of the first call's fixed text by which it is told from prose.
    Where that is a control token of the model, it must be exactly this token. Empty, calls begin
    the text, with a JSON object or as Python calls. ``control_tokens`` names the control tokens
    that the fixed texts spell, as far as the model has them as such; others may stand there too.
    """

    form: JsonCall | NamedCall | ParameterCall | PythonCall
    begin: str = ""
    before: str = ""
    after: str = ""
    between: str = ""
    end: str = ""
    trigger: str = ""
    control_tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model may write before it answers, between two marks.

    ``is_open``: the prompt ends with the start mark already, so the text begins within.
    """

    start: str
    end: str
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called.

    ``parameters`` is a JSON schema of objects; None, where it takes none. What of it cannot be
    enforced is an error where ``is_strict``; else any object is let through. ``param`` is the
    request's field that errors name, as ``tools[0].function.parameters``.
    """

    name: str
    parameters: Any = None
    is_strict: bool = False
    param: str = "tools"


@dataclass(frozen=True, slots=True)
class ToolGrammar:
    """What ``SamplingParams`` needs, and the names of functions whose arguments are not enforced.

    Not lazy, the grammar holds from the first token on.
    """

    grammar: str
    is_lazy: bool
    triggers: tuple[GrammarTrigger, ...]
    preserved_tokens: tuple[str, ...]
    unenforced: tuple[str, ...]


Form: TypeAlias = JsonCall | NamedCall | ParameterCall | PythonCall
