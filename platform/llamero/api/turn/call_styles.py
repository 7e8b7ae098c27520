"""How families of models write calls of tools: one row each, found by what their templates say."""

from dataclasses import dataclass
from functools import lru_cache

from inference.text.tool_grammar import (
    CallSyntax,
    JsonCall,
    NamedCall,
    ParameterCall,
    PythonCall,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStyle:
    """One way to write calls. A template is of this style if it holds all of the ``evidence``.

    ``is_parallel``: several calls may follow each other. ``id_length`` is that of the only ids that
    the templates take, where they do not take any. ``hint`` is told to the model with the tools,
    where it writes calls in another way if left to itself.
    """

    name: str
    evidence: tuple[str, ...]
    syntax: CallSyntax
    is_parallel: bool = True
    id_length: int = 0
    hint: str = ""


def _listed(opening: str, closing: str, form: JsonCall, *marks: str) -> CallSyntax:
    """Give the syntax of a JSON list of calls between two marks."""
    return CallSyntax(
        form,
        begin=f"{opening}[",
        between=", ",
        end=f"]{closing}",
        trigger=opening.strip(),
        control_tokens=(opening.strip(), closing, *marks),
    )


def _tagged(tag: str, form: ParameterCall) -> CallSyntax:
    """Give the syntax of calls in Qwen3-Coder's way, each between two tags."""
    return CallSyntax(
        form,
        before=f"<{tag}>\n",
        after=f"</function>\n</{tag}>",
        between="\n",
        trigger=f"<{tag}>",
        control_tokens=(f"<{tag}>", f"</{tag}>"),
    )


JSON = CallStyle(name="json", evidence=(), syntax=CallSyntax(JsonCall(), between="\n"))
"""What templates without tools are told to write, and the guess for those of no known style."""

HARMONY = CallStyle(
    name="harmony",
    evidence=("<|channel|>", "<|message|>", "commentary"),
    syntax=CallSyntax(
        NamedCall("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>"),
        trigger="<|channel|>commentary to=",
        control_tokens=("<|channel|>", "<|message|>", "<|constrain|>", "<|start|>", "<|end|>"),
    ),
    is_parallel=False,
)
_DEEPSEEK_MARKS = tuple(
    f"<｜tool▁{name}｜>"  # noqa: RUF001 - the marks are spelled with these characters
    for name in ("calls▁begin", "calls▁end", "call▁begin", "call▁end", "sep")
)
_CALLS, _CALLS_END, _CALL, _CALL_END, _SEP = _DEEPSEEK_MARKS

STYLES = (
    HARMONY,
    CallStyle(
        name="glm",
        evidence=("<arg_key>", "<arg_value>"),
        syntax=CallSyntax(
            ParameterCall(
                before_name="",
                after_name="\n",
                before_key="<arg_key>",
                after_key="</arg_key>\n<arg_value>",
                after_value="</arg_value>\n",
            ),
            before="<tool_call>",
            after="</tool_call>",
            between="\n",
            trigger="<tool_call>",
            control_tokens=("<tool_call>", "</tool_call>"),
        ),
    ),
    CallStyle(
        name="minimax",
        evidence=("<minimax:tool_call>",),
        syntax=CallSyntax(
            ParameterCall('<invoke name="', '">\n', '<parameter name="', '">', "</parameter>\n"),
            begin="<minimax:tool_call>\n",
            after="</invoke>",
            between="\n",
            end="\n</minimax:tool_call>",
            trigger="<minimax:tool_call>",
            control_tokens=("<minimax:tool_call>", "</minimax:tool_call>"),
        ),
    ),
    CallStyle(
        name="seed",
        evidence=("<seed:tool_call>",),
        syntax=_tagged(
            "seed:tool_call", ParameterCall(after_key=">", after_value="</parameter>\n")
        ),
    ),
    CallStyle(
        name="qwen-coder",
        evidence=("<tool_call>", "<function=", "<parameter="),
        syntax=_tagged("tool_call", ParameterCall()),
    ),
    CallStyle(
        name="hermes",
        evidence=("<tool_call>",),
        syntax=CallSyntax(
            JsonCall(),
            before="<tool_call>\n",
            after="\n</tool_call>",
            between="\n",
            trigger="<tool_call>",
            control_tokens=("<tool_call>", "</tool_call>"),
        ),
    ),
    CallStyle(
        name="mistral-named",
        evidence=("[TOOL_CALLS]", "[ARGS]"),
        syntax=CallSyntax(
            NamedCall("[TOOL_CALLS]", "[ARGS]"),
            trigger="[TOOL_CALLS]",
            control_tokens=("[TOOL_CALLS]", "[ARGS]"),
        ),
        id_length=9,
    ),
    CallStyle(
        name="mistral",
        evidence=("[TOOL_CALLS]",),
        syntax=_listed("[TOOL_CALLS]", "", JsonCall(id_key="id")),
        id_length=9,
    ),
    CallStyle(
        name="deepseek-fenced",
        evidence=(_CALLS, "```json"),
        syntax=CallSyntax(
            NamedCall(f"{_CALL}function{_SEP}", "\n```json\n"),
            begin=_CALLS,
            after=f"\n```{_CALL_END}",
            between="\n",
            end=_CALLS_END,
            trigger=_CALLS,
            control_tokens=_DEEPSEEK_MARKS,
        ),
    ),
    CallStyle(
        name="deepseek",
        evidence=(_CALLS,),
        syntax=CallSyntax(
            NamedCall(_CALL, _SEP),
            begin=_CALLS,
            after=_CALL_END,
            end=_CALLS_END,
            trigger=_CALLS,
            control_tokens=_DEEPSEEK_MARKS,
        ),
    ),
    CallStyle(
        name="kimi",
        evidence=("<|tool_calls_section_begin|>",),
        syntax=CallSyntax(
            NamedCall("<|tool_call_begin|>functions.", "<|tool_call_argument_begin|>", ":"),
            begin="<|tool_calls_section_begin|>",
            after="<|tool_call_end|>",
            end="<|tool_calls_section_end|>",
            trigger="<|tool_calls_section_begin|>",
            control_tokens=(
                "<|tool_calls_section_begin|>",
                "<|tool_calls_section_end|>",
                "<|tool_call_begin|>",
                "<|tool_call_argument_begin|>",
                "<|tool_call_end|>",
            ),
        ),
    ),
    CallStyle(
        name="command-r7b",
        evidence=("<|START_ACTION|>",),
        syntax=CallSyntax(
            JsonCall("tool_name", "parameters", "tool_call_id", is_id_first=True),
            begin="<|START_ACTION|>[\n    ",
            between=",\n    ",
            end="\n]<|END_ACTION|>",
            trigger="<|START_ACTION|>",
            control_tokens=("<|START_ACTION|>", "<|END_ACTION|>"),
        ),
    ),
    CallStyle(
        name="command-r",
        evidence=("Action:", "tool_name", "parameters"),
        syntax=CallSyntax(
            JsonCall("tool_name", "parameters"),
            begin="Action: ```json\n[\n    ",
            between=",\n    ",
            end="\n]```",
            trigger="Action:",
        ),
    ),
    CallStyle(
        name="phi",
        evidence=("<|/tool_call|>",),
        syntax=_listed("<|tool_call|>", "<|/tool_call|>", JsonCall()),
    ),
    CallStyle(
        name="granite",
        evidence=("<|tool_call|>",),
        syntax=_listed("<|tool_call|>", "", JsonCall()),
    ),
    CallStyle(
        name="lfm2-python",
        evidence=("<|tool_call_start|>",),
        syntax=CallSyntax(
            PythonCall(),
            begin="<|tool_call_start|>[",
            between=", ",
            end="]<|tool_call_end|>",
            trigger="<|tool_call_start|>",
            control_tokens=("<|tool_call_start|>", "<|tool_call_end|>"),
        ),
    ),
    CallStyle(
        name="lfm2",
        evidence=("<|tool_list_start|>",),
        syntax=_listed("<|tool_call_start|>", "<|tool_call_end|>", JsonCall()),
        hint="Output function calls as JSON.",
    ),
    CallStyle(
        name="nemotron",
        evidence=("<TOOLCALL>",),
        syntax=_listed("<TOOLCALL>", "</TOOLCALL>", JsonCall()),
    ),
    CallStyle(
        name="jamba",
        evidence=("<tool_calls>",),
        syntax=_listed("<tool_calls>", "</tool_calls>", JsonCall()),
    ),
    CallStyle(
        name="functools",
        evidence=("functools[",),
        syntax=_listed(" functools", "", JsonCall()),
    ),
    CallStyle(
        name="functionary",
        evidence=("<function=",),
        syntax=CallSyntax(NamedCall("<function=", ">"), after="</function>", trigger="<function="),
    ),
    CallStyle(
        name="python",
        evidence=("[func_name1(",),
        syntax=CallSyntax(PythonCall(), begin="[", between=", ", end="]"),
    ),
    CallStyle(
        name="llama",
        evidence=("ipython", '"parameters"'),
        syntax=CallSyntax(JsonCall(arguments_key="parameters")),
        is_parallel=False,
    ),
    JSON,
)
STYLE_OF_NAME = {style.name: style for style in STYLES}


@lru_cache(64)
def find_call_style(template: str) -> CallStyle:
    """Give the style of a template's calls.

    Who writes in channels calls there too, also where a template knows of no tools.
    """
    if "tools" not in template and not all(word in template for word in HARMONY.evidence):
        return JSON
    return next(style for style in STYLES if all(word in template for word in style.evidence))
