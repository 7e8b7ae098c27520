"""Models that think, by the manner of their templates and by what they write."""

from dataclasses import dataclass

_ROLES = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
_TURN = "{% if add_generation_prompt %}assistant:"
_END = "{% endif %}"
_ROLES_APART = (
    "{% for m in messages %}{% set words = m.content.split('</think>')[-1] %}"
    "{{ m.role }}: {{ words }}\n{% endfor %}"
)


@dataclass(frozen=True)
class Thinker:
    """A family. ``written`` is what it writes where it thinks ``Hm.`` and answers ``Hi``, and
    ``unfinished`` where it is cut off while it thinks ``Hm``.

    ``opened`` and ``closed`` are what a prompt ends with, where the template thinks as it likes,
    and where it must not.
    """

    template: str
    written: str
    unfinished: str
    opened: str = "assistant:"
    closed: str = "assistant:"
    answered: str = "Hi"


def _prefilled(opening: str, closing: str) -> Thinker:
    return Thinker(
        template=f"{_ROLES_APART}{closing}{_TURN}{opening}\n{_END}",
        written=f"Hm.\n{closing}\n\nHi",
        unfinished="Hm",
        opened=f"{opening}\n",
        closed=f"{opening}\n\n{closing}\n\n",
    )


THINKERS = {
    "qwen3": Thinker(
        template=_ROLES_APART
        + _TURN
        + "{% if enable_thinking is defined and enable_thinking is false %}"
        + "{{ '<think>\n\n</think>\n\n' }}{% endif %}"
        + _END,
        written="<think>\nHm.\n</think>\n\nHi",
        unfinished="<think>\nHm",
        closed="<think>\n\n</think>\n\n",
    ),
    "qwen3-always": _prefilled("<think>", "</think>"),
    "deepseek-r1": _prefilled("<think>", "</think>"),
    "deepseek-v3.1": Thinker(
        template=_ROLES_APART
        + _TURN
        + "{% if thinking %}<think>{% else %}</think>{% endif %}"
        + _END,
        written="Hi",
        unfinished="Hm",
        opened="</think>",
        closed="</think>",
    ),
    "glm": Thinker(
        template=_ROLES_APART
        + _TURN
        + "{% if enable_thinking is defined and not enable_thinking %}{{ '\n<think></think>' }}"
        + "{% endif %}"
        + _END,
        written="\n<think>Hm.</think>\nHi",
        unfinished="\n<think>Hm",
        closed="\n<think></think>",
    ),
    "granite": Thinker(
        template="{% if thinking %}Think between <think></think>, answer between "
        "<response></response>.\n{% endif %}" + _ROLES + _TURN + _END,
        written="<think>Hm.</think><response>Hi</response>",
        unfinished="<think>Hm",
    ),
    "granite-in-words": Thinker(
        template="{% if thinking %}Write your thoughts after 'Here is my thought process:' and "
        "your response after 'Here is my response:'.\n{% endif %}" + _ROLES + _TURN + _END,
        written="Here is my thought process:\n\nHm.\n\nHere is my response:\n\nHi",
        unfinished="Here is my thought process:\n\nHm",
    ),
    "hunyuan": Thinker(
        template=_ROLES_APART + "{# <answer> </answer> #}" + _TURN + _END,
        written="<think>\nHm.\n</think>\n<answer>\nHi\n</answer>",
        unfinished="<think>\nHm",
    ),
    "magistral": Thinker(
        template="[SYSTEM]Think first: [THINK]so[/THINK]\n" + _ROLES + _TURN + _END,
        written="[THINK]Hm.[/THINK]Hi",
        unfinished="[THINK]Hm",
    ),
    "command-a": Thinker(
        template=_ROLES + "{# <|START_THINKING|> <|END_THINKING|> #}" + _TURN + _END,
        written="<|START_THINKING|>Hm.<|END_THINKING|>Hi",
        unfinished="<|START_THINKING|>Hm",
    ),
    "seed": Thinker(
        template=_ROLES + "{# <seed:think> </seed:think> #}" + _TURN + _END,
        written="<seed:think>\nHm.\n</seed:think>\nHi",
        unfinished="<seed:think>\nHm",
    ),
    "exaone": _prefilled("<thought>", "</thought>"),
    "openthinker": Thinker(
        template="Use <|begin_of_thought|> <|end_of_thought|> and <|begin_of_solution|> "
        "<|end_of_solution|>.\n" + _ROLES + _TURN + _END,
        written="<|begin_of_thought|>\n\nHm.\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\nHi"
        "\n\n<|end_of_solution|>",
        unfinished="<|begin_of_thought|>\n\nHm",
    ),
    "gpt-oss": Thinker(
        template="Reasoning: {{ reasoning_effort or 'medium' }}\n"
        "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}"
        "{# <|channel|>analysis commentary final #}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
        written="<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final"
        "<|message|>Hi",
        unfinished="<|channel|>analysis<|message|>Hm",
        opened="<|start|>assistant",
        closed="<|start|>assistant",
    ),
}
